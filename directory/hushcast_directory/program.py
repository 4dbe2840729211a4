"""The directory as a program: it signs the list of a network's relays."""

from hushcast_runtime.processes.program import DottedPath, Program, ProgramRole

DIRECTORY = Program(
    name="directory",
    group="directory",
    module=("hushcast_directory",),
    roles=(
        ProgramRole(
            "directory",
            "A directory: it signs the list of the network's relays, once an epoch.",
            founded="overlay",
            restore_note="It is as it was then: relays that registered since do so again. It signs nothing "
            "for the epoch that runs and, from its middle on, for the next: it may have done so already. "
            "Daemons go on with the roster that they have.",
            more_keys="# Relays that must have registered before the first list: the number that you start "
            "with.\nfirst_roster = 1\n",
        ),
    ),
    settings=DottedPath("hushcast_directory.server.settings.DirectorySettings"),
    run=DottedPath("hushcast_directory.server.process.run_directory"),
    key_files=DottedPath("hushcast_directory.server.process.KEY_FILES"),
    note_restored=DottedPath("hushcast_directory.server.restoration.note_restored"),
    rotate=DottedPath("hushcast_directory.server.key_rotation.rotate_directory"),
    key_names=("signing", "service"),
    run_help="""Run a network's directory in the foreground until SIGTERM or Ctrl-C.

    It writes `network.toml`, the section that the network's daemons need, into its state directory. SIGHUP
    makes it list the relays that a closed network names then, and vote for what `[authorities]` says
    then.""",
    doctor_help="""Look for what keeps a directory from working.

    Says what to do about it. Looks at the state, and asks a directory that runs for its Tor, clock, disk and
    limits, whether its onion service is published and reached from here, how old its roster is and how many
    relays are in it; of several that agree also which others are reached, whether this one's votes count,
    and what is kept or said against whom. Takes two minutes at most. Run it as the directory's user or as
    root. Ends with exit code 1 if anything is bad.""",
)
PROGRAMS = (DIRECTORY,)
