"""What the store keeps, as those who use a workspace see it: types, states and names."""

from assay.store.access.grants import GROUP, USER, NameTaken, check_grantee, grant_of
from assay.store.access.identities import SECONDS as SIGN_IN_SECONDS
from assay.store.access.identities import Identity, SignIn, groups_now
from assay.store.access.members import FORMER, Member, is_valid_group_name, is_valid_name
from assay.store.blobs import SCHEME, Blobs, Uploads, is_bucket, open_blobs
from assay.store.database import STATE, ChangeListener, Store, former_states, open_store
from assay.store.document_list import SHOWN, Counted, Head
from assay.store.documents import READY, REPLACED, Entry
from assay.store.jobs import CANCELLED, DONE, FAILED, Job, JobFile
from assay.store.place_lists import is_pattern
from assay.store.runs.figures import Fact
from assay.store.runs.forecasts import EstimateRange, WorkEstimate
from assay.store.runs.history import RunProgress
from assay.store.runs.records import Record, documents_in
from assay.store.runs.underway import LEASE, ListedRun, is_elsewhere, this_process
from assay.store.runs.visibility import WITHHELD_ANSWER, WITHHELD_REASON
from assay.store.threads import Thread
from assay.store.watches import Watch

__all__ = [
    "CANCELLED", "DONE", "FAILED", "FORMER", "GROUP", "LEASE", "READY", "REPLACED", "SCHEME", "SHOWN", "SIGN_IN_SECONDS",
    "STATE", "USER", "WITHHELD_ANSWER", "WITHHELD_REASON", "Blobs", "ChangeListener", "Counted", "Entry", "EstimateRange",
    "Fact", "Head", "Identity", "Job", "JobFile", "ListedRun", "Member", "NameTaken", "Record", "RunProgress", "SignIn",
    "Store", "Thread", "Uploads", "Watch", "WorkEstimate", "check_grantee", "documents_in", "former_states", "grant_of",
    "groups_now", "is_bucket", "is_elsewhere", "is_pattern", "is_valid_group_name", "is_valid_name", "open_blobs",
    "open_store", "this_process",
]  # fmt: skip
