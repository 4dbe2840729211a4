"""The directory as a program: it signs the list of a network's relays."""

from hushcast_runtime.processes.program import DottedPath, Program, ProgramRole

DIRECTORY = Program(
    name="directory",
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
)
PROGRAMS = (DIRECTORY,)
