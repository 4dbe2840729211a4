"""The bounds of an MQTT broker: whatever a client can make grow has one here."""

from __future__ import annotations

import msgspec

DAY = 86_400  # seconds

MAX_CONNECTIONS = 1_000  # clients at once, each user its share; each takes some 20 KiB
MAX_SESSIONS = 1_000  # sessions that outlive their connection, each user its share; one more is refused
MAX_SESSION_SECONDS = 21 * DAY  # that a session waits for its client; as long as an inbox keeps messages
MAX_FILTERS = 5_000  # subscriptions of one client; Home Assistant has one for each entity, some thousand
MAX_FILTERS_A_USER = 10_000  # of all clients of one user: each that matches takes 3 to 4 µs of a publication
MAX_SHARED = 2_500  # shared subscriptions, each user its share: each may be one more message to send, 8 µs
MAX_LOOKED_AT = 64  # members of a group that are looked at for who gets a message, a third of a µs each
MAX_ASKED = 1_000  # filters of one SUBSCRIBE or UNSUBSCRIBE, some 12 µs each; Home Assistant sends 500
MAX_QUEUE = 4_000  # messages that wait in one session; then the oldest goes; a house's discovery is 3,000
MAX_QUEUE_BYTES = (
    16 * 1024 * 1024
)  # bytes of topics and payloads that wait in one session; then the oldest goes
MAX_HELD_BYTES = (
    256 * 1024 * 1024
)  # bytes that wait in all sessions, each user its share; then the fullest of its sessions loses its oldest
MAX_WINDOW = 100  # messages of QoS 1 and 2 under way to one client, however many more it would take
MAX_WINDOW_BYTES = 1024 * 1024  # bytes of them under way to one client; one message may go beyond
MAX_HELD_BACK = 256 * 1024  # bytes that wait for the disk on their way to one client; then messages wait
MAX_INCOMING = 1_000  # open QoS 2 exchanges of a client of 3.1.1, which no receive maximum binds
MAX_OFFERED = 200  # looks for retained messages that wait in one session, or all its filters, twice
MAX_RETAINED = 10_000  # retained messages, each user its share
MAX_RETAINED_BYTES = 64 * 1024 * 1024  # bytes of their topics, payloads and properties, each user its share
MAX_DELAYED_BYTES = 16 * 1024 * 1024  # bytes of delayed messages, each user its share; 50 of the largest
MAX_HISTORY = 10_000  # messages of all histories, each user its share; then its own oldest go
MAX_HISTORY_BYTES = 64 * 1024 * 1024  # bytes of their topics, payloads and properties, each user its share
MAX_CLIENT_ID = 256  # bytes of UTF-8 of a client identifier; the longest seen in use have some 60
MAX_TOPIC = 1_024  # characters of a topic or filter; those in use have some dozens, and memory keeps them
MAX_PLANS = 1_000  # topics whose subscribers are remembered until a subscription changes

MAX_PACKET = 336 * 1024  # bytes of a packet: a payload of 256 KiB, the longest topic, 8 KiB of properties
LARGEST_PACKET = 268_435_460  # bytes: the largest that the standard can say, header included
RECEIVE_MAXIMUM = 20  # messages of QoS 1 and 2 that a client of version 5 may have under way to us
TOPIC_ALIASES_IN = 10  # topic aliases that a client may set
TOPIC_ALIASES_OUT = 10  # topic aliases that we set at most: the first topics of a connection
KEEP_ALIVE = 60  # seconds: the longest that clients of version 5 get; those of 3.1.1 keep theirs
MESSAGE_OVERHEAD = 200  # bytes that a message counts beside its topic and payload
SYS_EVERY = 10  # seconds between two publications of $SYS
PIECE = 64  # levels of topics that a look-up goes through before others may have their turn; some 20 µs
TURN_STEPS = 64  # messages, or pieces of a look-up, for one client before others have their turn; some 2 ms
PURGE_EVERY = 60  # seconds between two looks for retained messages whose time is over


class MqttLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator may set of these bounds; a house of a hundred devices does not meet the defaults."""

    clients: int = MAX_CONNECTIONS
    sessions: int = MAX_SESSIONS
    filters: int = MAX_FILTERS
    user_filters: int = MAX_FILTERS_A_USER
    shared_filters: int = MAX_SHARED
    retained: int = MAX_RETAINED
    retained_bytes: int = MAX_RETAINED_BYTES
    queue: int = MAX_QUEUE
    queue_bytes: int = MAX_QUEUE_BYTES
    held_bytes: int = MAX_HELD_BYTES
    inflight: int = MAX_WINDOW
    delayed: int = 0
    """Messages that may wait to be published, as `$delayed/SECONDS/TOPIC`; 0: that is no topic."""
    delayed_bytes: int = MAX_DELAYED_BYTES
    history: int = MAX_HISTORY
    history_bytes: int = MAX_HISTORY_BYTES
    keep_alive: int = KEEP_ALIVE
