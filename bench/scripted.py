"""The models and servers of the tests (tests/doubles), for benchmarks."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from doubles import *  # noqa: F403
from doubles.chat_server import completion, events  # noqa: F401
from doubles.fault_replies import faulty_reply  # noqa: F401
from doubles.fill_policies import cooperative_reply  # noqa: F401
from doubles.held_stream import event_text  # noqa: F401
from doubles.protocol import reply_of  # noqa: F401
