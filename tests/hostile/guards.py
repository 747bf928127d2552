"""Every guard with a way to take it out, and the test that then fails: `make guards`, or this file with names.

Each mutation is made in a copy of the package; the package itself is never touched. `--write` writes docs/guards.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "assay"
LONGEST = 300  # seconds for one test


@dataclass(frozen=True, slots=True)
class Guard:
    """What is guarded, where, the exact words of the guard, what stands there instead, and which test must then fail."""

    name: str
    file: str
    words: str
    instead: str
    test: str


INJECTION, REPLIES = "tests/hostile/test_injection.py", "tests/hostile/test_hostile_replies.py"
ALTERED, REVIEWING = "tests/hostile/test_citations_altered.py", "tests/governance/test_reviewing.py"
OFFERS = "tests/hostile/test_offers.py"
FORGED, COPIES = "tests/hostile/test_forged_erasure.py", "tests/hostile/test_erased_copies.py"
RIGHTS, PLACES = "tests/hostile/test_recorded_rights.py", "tests/hostile/test_every_place.py"
RESTORED, SHARED = "tests/hostile/test_restored.py", "tests/hostile/test_shared_originals.py"
RESTRICTED, ACCOUNTS = "tests/hostile/test_restricted_files.py", "tests/hostile/test_accounts.py"
RULES, RULINGS = "tests/answer/test_claim_rules.py", "tests/answer/test_model_rulings.py"
SANDBOX, PARTIAL = "tests/ingest/test_sandbox_guards.py", "tests/ingest/test_partial_files.py"
JOBS, SETUP, FEEDBACK = "tests/serve/test_jobs.py", "tests/serve/test_setup.py", "tests/serve/test_feedback.py"
PROVIDER = "tests/serve/test_sign_in_with_a_provider.py"
REPETITION = "tests/answer/test_repetition.py"
SYNTHESIS = "tests/synthesis"
FLUSHES = "tests/agent/test_group_commit.py"
FIGURES = "tests/agent/test_reading_figures.py"
GUARDS = (
    Guard(
        "what a model reads from a picture holds only if its judge was shown the picture",
        "answer/checking/judge.py",
        "_unseen(claim) if each.figure and each.figure not in seen else each",
        "each",
        f"{FIGURES}::test_what_a_blind_judge_supports_of_a_picture_is_not_delivered",
    ),
    Guard(
        "nothing that a model read from a picture is delivered that no judge of this run was shown",
        "answer/compose.py",
        "if claim.figure and not claim.edited and claim.figure not in guard.judged_by_sight:",
        "if False:",
        f"{FIGURES}::test_an_answer_whose_judge_was_shown_no_picture_has_a_fault",
    ),
    Guard(
        "a sync reaches the addresses in the settings alone",
        "ingest/places/__init__.py",
        "if not allows(settings.sources_allowed, address):",
        "if False:",
        "tests/contracts/test_places.py::test_only_an_address_in_the_settings_is_reached",
    ),
    Guard(
        "a server follows what the settings name alone",
        "serve/routes/watches.py",
        "if not allows(server.workspace.settings.sources_allowed, place):",
        "if False:",
        "tests/serve/test_watches.py::test_only_what_the_settings_allow_is_watched",
    ),
    Guard(
        "a file that was renamed twice is not taken for gone",
        "ingest/changes.py",
        "kept = {entry.uri for entry in gone if sizes & {entry.bytes, None}}",
        "kept = set[str]()",
        "tests/ingest/test_watching.py::test_a_file_that_is_gone_is_waited_for_while_one_as_large_is_not_read_yet",
    ),
    Guard(
        "words in quotation marks are in a cited passage",
        "answer/checking/claim_rules.py",
        "if altered := altered_quotation(words, texts.values()):",
        'if altered := "":',
        f"{RULES}::test_words_in_quotation_marks_must_be_those_of_a_cited_passage",
    ),
    Guard(
        "the fence escapes its own marks",
        "prompts/__init__.py",
        'seen = _BRACKETS.sub("|", clean_text(words))',
        "seen = clean_text(words)",
        f"{INJECTION}::test_nothing_between_the_marks_looks_like_a_mark",
    ),
    Guard(
        "the fence removes what cannot be seen",
        "prompts/__init__.py",
        'seen = _BRACKETS.sub("|", clean_text(words))',
        'seen = _BRACKETS.sub("|", words)',
        f"{INJECTION}::test_what_nobody_can_see_does_not_pass_the_fence_whether_in_the_words_or_in_the_label",
    ),
    Guard(
        "the fence takes apart what ends a message",
        "prompts/__init__.py",
        'return _SPECIAL_TOKEN.sub(lambda match: f"{match[0]} ", seen)',
        "return seen",
        f"{INJECTION}::test_what_a_models_server_takes_for_the_end_of_a_message_is_taken_apart",
    ),
    Guard(
        "the fence takes apart words between full-width bars",
        "prompts/__init__.py",
        r'|｜(?=\w{1,40}｜)"',
        '"',
        f"{INJECTION}::test_what_a_models_server_takes_for_the_end_of_a_message_is_taken_apart",
    ),
    Guard(
        "the fence takes apart words between angle brackets that are no HTML",
        "prompts/__init__.py",
        '[\\w:.▁-]{{0,60}}[>＞])"',
        '[\\w:.▁-]{{0,60}}[>＞]\\b\\B)"',
        f"{INJECTION}::test_what_a_models_server_takes_for_the_end_of_a_message_is_taken_apart",
    ),
    Guard(
        "no words of a bundle control the terminal of whoever checks it",
        "governance/audit/check.py",
        r'shown = "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in line)',
        "shown = line",
        "tests/governance/test_bundle.py::test_no_name_in_a_bundle_writes_a_line_of_its_own",
    ),
    Guard(
        "a file name is stored and shown on one line",
        "core/printable.py",
        "return _IN_NAMES.sub(_escaped, name)",
        "return name",
        "tests/cli/test_safety.py::test_no_file_name_breaks_its_line_or_turns_others_round",
    ),
    Guard(
        "what turns text round is escaped for a terminal",
        "core/printable.py",
        "return _IN_TEXT.sub(_escaped, text)",
        "return text",
        "tests/cli/test_safety.py::test_what_turns_text_round_is_escaped_for_a_terminal",
    ),
    Guard(
        "exports can be read by their owner alone",
        "core/private_files.py",
        "os.O_EXCL, 0o600)",
        "os.O_EXCL, 0o644)",
        "tests/governance/test_backup.py",
    ),
    Guard(
        "what the command line writes can be read by its owner alone",
        "cli/main.py",
        "before = os.umask(OTHERS)",
        "before = os.umask(0o022)",
        "tests/cli/test_safety.py::test_a_workspace_in_a_folder_that_all_can_read_is_made_its_owners_alone",
    ),
    Guard(
        "an agent hears that an answer waits for a reviewer",
        "serve/mcp_tools.py",
        "    if reply.held:\n",
        "    if False:\n",
        "tests/serve/test_mcp.py::test_of_an_answer_that_is_held_an_agent_hears_that_it_waits_for_a_reviewer",
    ),
    Guard(
        "JSON is not compressed for a page from elsewhere",
        "serve/compressed.py",
        'headers.get("sec-fetch-site") in FOREIGN',
        "False",
        "tests/serve/test_page_bundle.py::test_a_page_from_elsewhere_cannot_learn_from_lengths",
    ),
    Guard(
        "a message of the log is one line",
        "serve/process.py",
        "record.message = printable_name(record.message)",
        "pass",
        "tests/serve/test_restart.py::test_no_name_begins_a_line_of_the_log",
    ),
    Guard(
        "headers have a deadline",
        "serve/connections.py",
        "if arrival.phase is Phase.headers and limits.header_seconds:",
        "if False:",
        "tests/serve/test_connections.py::test_headers_that_never_end_are_not_waited_for",
    ),
    Guard(
        "a body has a lowest rate",
        "serve/connections.py",
        "if arrival.phase is Phase.body and limits.idle_seconds:",
        "if False:",
        "tests/serve/test_connections.py::test_a_body_that_drips_is_not_waited_for",
    ),
    Guard(
        "a reply that nobody reads is ended",
        "serve/connections.py",
        "self._unread_timer = self.loop.call_later(self._limits.idle_seconds, self.transport.abort)",
        "pass",
        "tests/serve/test_connections.py::test_a_reply_that_nobody_reads_is_ended",
    ),
    Guard(
        "connections of one address are limited",
        "serve/connections.py",
        "if limits.per_address and not proxied and self.by_address[network] >= limits.per_address:",
        "if False:",
        "tests/serve/test_connections.py::test_five_hundred_idle_connections_of_one_address_keep_nobody_else_out",
    ),
    Guard(
        "connections are limited in all",
        "serve/connections.py",
        "if limits.most and self.by_address.total() >= limits.most:",
        "if False:",
        "tests/serve/test_connections.py::test_connections_are_counted_by_address_and_in_all",
    ),
    Guard(
        "a server without sign-in asks for its token",
        "serve/guard.py",
        "if self._token and not has_token(self._token, scope, headers):",
        "if False:",
        "tests/serve/test_local_token.py::test_without_the_token_nothing_is_read_or_done",
    ),
    Guard(
        "the command gives a server a token",
        "cli/serve.py",
        'if serving.auth == "off" and not no_token:',
        "if False:",
        "tests/serve/test_local_token.py::test_the_address_that_is_printed_opens_the_page_and_no_other_does",
    ),
    Guard(
        "a token that others could have read is replaced",
        "serve/guard.py",
        "if file.is_file() and not file.stat().st_mode & 0o077:",
        "if file.is_file():",
        "tests/serve/test_local_token.py::test_a_workspace_keeps_its_token_unless_others_could_have_read_it",
    ),
    Guard(
        "a workspace is its owner's alone",
        "store/database.py",
        "make_private(folder)  # it may have been made by somebody else's rules",
        "pass",
        "tests/cli/test_safety.py::test_a_workspace_in_a_folder_that_all_can_read_is_made_its_owners_alone",
    ),
    Guard(
        "messages to a webhook are signed",
        "governance/reviewing.py",
        "return {HEADER: signature(key, int(time.time()), content)} if key else {}",
        'return {HEADER: "t=0,v1=0"}',
        "tests/serve/test_reviews.py::test_a_webhook_is_told_once_that_an_answer_waits_signed_and_without_a_word_of_it",
    ),
    Guard(
        "requests to a server at the same moment share a ceiling",
        "store/runs/budgets.py",
        "        if over is not None:\n            return over\n        if ceilings.day_seconds:",
        "        if ceilings.day_seconds:",
        "tests/serve/test_budget_race.py::test_requests_at_the_same_moment_spend_no_more_than_the_ceiling",
    ),
    Guard(
        "steps of the plan stand between marks",
        "agent/prompt_window.py",
        'return "Steps:\\n" + fence(fence_mark(run.id), "steps", "\\n".join(lines))',
        'return "Steps:\\n" + "\\n".join(lines)',
        f"{INJECTION}::test_in_every_prompt_whatever_nobody_vouches_for_stands_between_marks",
    ),
    Guard(
        "claims that are checked stand between marks",
        "answer/checking/judge.py",
        'listed = fence(mark, "claims", "\\n".join(lines))',
        'listed = "\\n".join(lines)',
        f"{INJECTION}::test_a_claim_cannot_bring_its_own_number_or_close_its_fence",
    ),
    Guard(
        "descriptions of knowledge bases stand between marks",
        "agent/prompt_window.py",
        'return "The documents:\\n" + fence(fence_mark(run.id), "collections", "\\n".join(named)) if named else ""',
        'return "The documents:\\n" + "\\n".join(named) if named else ""',
        f"{INJECTION}::test_a_description_of_a_knowledge_base_is_its_owners_and_not_ours",
    ),
    Guard(
        "a passage that reads like an instruction is flagged",
        "answer/weigh.py",
        'flagged = is_suspicious(f"{passage.context}\\n{passage.text}")',
        "flagged = False",
        f"{INJECTION}::test_a_flagged_passage_is_kept_as_evidence_with_its_flag",
    ),
    Guard(
        "the flag goes along to the claim",
        "language/injection.py",
        "return bool(flags) and all(flags)",
        "return False",
        f"{INJECTION}::test_the_taint_of_a_claim_is_shown_wherever_the_claim_is",
    ),
    Guard(
        "no model takes the taint away",
        "answer/checking/judge.py",
        "judged = note_taint(replace(claim, verdict=verdict, why=reason, by=by), evidence)",
        "judged = replace(claim, verdict=verdict, why=reason, by=by)",
        f"{INJECTION}::test_no_model_takes_the_taint_from_a_claim",
    ),
    Guard(
        "what a document orders is no support",
        "answer/compose.py",
        'a passage tells its reader to say so" if instructed else ""',
        '" if False else ""',
        "tests/answer/test_compose.py::"
        "test_no_verdict_delivers_what_a_passage_that_was_found_and_not_kept_orders_a_model_to_say",
    ),
    Guard(
        "a quotation stands in its document",
        "language/quotation.py",
        "document.text[quote.start : quote.end] == quote.text",
        "True",
        f"{ALTERED}::test_every_altered_citation_is_caught",
    ),
    Guard(
        "a quotation lies in the passage that is cited",
        "answer/checking/judge.py",
        "if not any(lies_in(quote, each.passage) for each in cited.values()):",
        "if False:",
        f"{ALTERED}::test_every_altered_citation_is_caught",
    ),
    Guard(
        "a claim cites only what the run has gathered",
        "answer/checking/claim_rules.py",
        "if {each.key for each in cited} != set(claim.cites):",
        "if not cited:",
        "tests/answer/test_claim_rules.py",
    ),
    Guard(
        "figures of a claim stand in what it cites, or are computed",
        "answer/checking/claim_rules.py",
        "if claim.working is None and claim.figure is None and (unknown := unfounded_number(words, texts.values())):",
        "if unknown := '':",
        "tests/answer/test_claim_rules.py",
    ),
    Guard(
        "a calculation computes",
        "answer/checking/claim_rules.py",
        "if proof.refuted:",
        "if False:",
        f"{RULES}::test_a_calculation_that_does_not_compute_fails_whatever_a_model_says",
    ),
    Guard(
        "what rests only on flagged passages repeats them",
        "answer/checking/claim_rules.py",
        "if all(each.flagged for each in cited) and not any(stands_in(words, each.passage.text) for each in cited):",
        "if False:",
        f"{RULES}::test_what_rests_only_on_a_flagged_passage_must_repeat_it",
    ),
    Guard(
        "what turns a source round as a passage orders is an instruction obeyed",
        "answer/checking/claim_rules.py",
        "return bool(small) and any(small <= _words(order) for order in orders)",
        "return False",
        "tests/hostile/test_hostile_runs.py::"
        "test_what_a_document_orders_is_no_support_whatever_the_model_that_checks_says",
    ),
    Guard(
        "a repetition stands under no introduction or title",
        "answer/checking/repetition.py",
        "and title == intro == block.start",
        "and True",
        f"{REPETITION}::test_a_claim_under_a_heading_is_left_to_a_judge",
    ),
    Guard(
        "what is copied and not judged is quoted with its block",
        "answer/draft.py",
        "made = claim if own_words else _quoted(claim, evidence)",
        "made = claim",
        f"{REPETITION}::test_a_claim_is_not_delivered_without_the_words_that_turn_it",
    ),
    Guard(
        "an order to a model is not quoted with a block",
        "answer/checking/repetition.py",
        "if span and is_suspicious(passage.text[slice(*span)]):",
        "if False:",
        f"{REPETITION}::test_a_block_is_quoted_without_an_order_to_a_model",
    ),
    Guard(
        "no model lifts what code has refuted",
        "answer/checking/judge.py",
        "if claim.verdict not in (Verdict.supported, Verdict.partial):",
        "if False:",
        f"{RULES}::test_what_is_refuted_fails_whatever_a_model_says",
    ),
    Guard(
        "the words that a judge names are in what is cited",
        "answer/checking/judge.py",
        "if not carried and not heading and not claim.figure and not _in_labels(ruling.words, cited, sources):",
        "if False:",
        f"{RULINGS}::test_words_that_the_cited_passages_do_not_have_carry_nothing",
    ),
    Guard(
        "a claim without a ruling fails",
        "answer/checking/judge.py",
        'none = Ruling(claim=0, why="no verdict was given", verdict="unsupported")',
        'none = Ruling(claim=0, why="no verdict was given", verdict="supported", words=[claims[0].text])',
        f"{RULINGS}::test_a_claim_without_a_ruling_does_not_hold",
    ),
    Guard(
        "what a judge calls missing brings no fact of its own",
        "answer/claims.py",
        "if strange or facts.missing_facts(clause, known, facts.lowercase_stems(known)) else clause",
        "if strange else clause",
        f"{RULINGS}::test_what_is_missing_states_nothing_of_its_own_or_is_told_in_the_words_of_the_question",
    ),
    Guard(
        "the words that carry a claim are cited when it is delivered",
        "answer/checking/judge.py",
        "if not all(any(within(words, each.passage) for each in cited.values()) for words in claim.carried_by):",
        "if False:",
        "tests/answer/test_compose.py::test_words_that_a_claim_does_not_cite_carry_nothing_at_delivery",
    ),
    Guard(
        "a judge that failed its trial settles nothing",
        "agent/steps/check.py",
        "capable = run.asked.has_model and not context.small(Role.check)",
        "capable = run.asked.has_model",
        "tests/agent/test_judging.py::test_nothing_is_delivered_on_the_word_of_a_judge_that_failed_its_trial",
    ),
    Guard(
        "a heading that states something is judged",
        "answer/claims.py",
        'if STATES.search(tidy) and not tidy.endswith("?"):',
        "if False:",
        "tests/answer/test_claims.py::test_a_heading_that_states_something_is_a_claim_on_what_stands_below_it",
    ),
    Guard(
        "what was delivered was checked, and holds still",
        "answer/compose.py",
        "if guard.checked.get(place) != claim or claim.verdict is not Verdict.supported:",
        "if False:",
        "tests/answer/test_compose.py",
    ),
    Guard(
        "only tools of the list are run",
        "agent/steps/decide.py",
        "                if tool is None:\n",
        "                if tool is None and False:\n",
        "tests/hostile/test_hostile_runs.py::"
        "test_a_tool_that_does_not_exist_is_never_called_and_the_model_is_told_which_there_are",
    ),
    Guard(
        "names that a model gives a tool are no ids of documents",
        "store/runs/records.py",
        'for name, each in body.items() if name != "arguments"',
        "for name, each in body.items()",
        f"{INJECTION}::test_in_every_prompt_whatever_nobody_vouches_for_stands_between_marks",
    ),
    Guard(
        "a search is filtered by who asks",
        "index/retrieve.py",
        "allowed = both(where, readable(scope))",
        "allowed = where",
        f"{REPLIES}::test_an_index_is_never_asked_for_more_than_the_person_may_read",
    ),
    Guard(
        "what a search found is held against the store again",
        "index/retrieve.py",
        "titles = documents.titles(store, listed.doc_ids, scope)",
        'titles = dict.fromkeys(listed.doc_ids, "")',
        "tests/agent/test_tools.py",
    ),
    Guard(
        "a gated run is delivered only when approved",
        "store/runs/reviews.py",
        "if used.rowcount != 1:",
        "if False:",
        REVIEWING,
    ),
    Guard(
        "an approval is for one seal",
        "store/runs/reviews.py",
        "if row.seal != reviewed.seal:",
        "if False:",
        f"{REPLIES}::test_an_approval_of_something_else_is_refused_by_the_store_itself",
    ),
    Guard(
        "what is delivered is what waited",
        "store/runs/records.py",
        'if not any(each["seal"] == answered.seal and each["answer"] | free == given for each in stored):',
        "if False:",
        f"{REVIEWING}::test_what_is_delivered_under_a_seal_is_what_waited_under_it_whoever_writes_it_down",
    ),
    Guard(
        "four eyes",
        "workspace/services/reviews.py",
        "return four_eyes and review.who == self.principal.id and review.state is not ReviewState.delivered",
        "return False",
        f"{REVIEWING}::test_with_four_eyes_whoever_asked_decides_nothing_whether_it_was_set_then_or_is_set_now",
    ),
    Guard(
        "budgets are reserved before a call",
        "store/runs/budgets.py",
        "        if over is not None:\n            return over\n        if ceilings.day_seconds:",
        "        if ceilings.day_seconds:",
        "tests/store/test_budgets.py::test_a_request_that_would_pass_a_ceiling_is_refused_and_the_ceiling_named",
    ),
    Guard(
        "an access list stays at its place, whatever comes there",
        "store/place_lists.py",
        "    return None if label == base else label\n",
        "    return None\n",
        f"{RESTRICTED}::test_a_file_that_is_renamed_over_a_restricted_one_takes_over_its_list_and_so_does_the_next_version",
    ),
    Guard(
        "a moved file is read by nobody who was not on its access list",
        "store/place_lists.py",
        "    remove_names(connection, label, fewer)\n",
        "",
        f"{RESTRICTED}::test_of_two_restricted_files_the_one_that_is_moved_over_the_other_is_read_by_nobody_new",
    ),
    Guard(
        "a removed file that comes back under another name takes its access list along",
        "store/place_lists.py",
        "    return [(label, SAME)] if label else []\n",
        "    return []\n",
        f"{RESTRICTED}::test_a_restricted_file_that_comes_back_under_another_name_is_still_restricted",
    ),
    Guard(
        "a file that comes when a restricted one vanished is held",
        "store/place_lists.py",
        "_vanished(connection, store, base) if is_new else []",
        "[]",
        f"{RESTRICTED}::test_a_restricted_file_that_is_renamed_and_edited_between_two_syncs_is_held_until_its_owner_decides",
    ),
    Guard(
        "a document that holds the text of a restricted one is held",
        "ingest/pipeline.py",
        "        found = held_inside(document, intake.restricted)\n",
        "        found = []\n",
        f"{RESTRICTED}::test_an_edited_copy_beside_a_restricted_file_or_over_an_open_one_is_held_and_an_unrelated_file_is_not",
    ),
    Guard(
        "what comes to a restricted folder is restricted",
        "store/place_lists.py",
        "    gone = _vanished(",
        "    over = []\n    gone = _vanished(",
        f"{RESTRICTED}::test_a_restricted_folder_is_restricted_for_what_is_there_what_comes_and_what_is_inside_messages",
    ),
    Guard(
        "rights that were forged are not recorded as found",
        "store/access/rights.py",
        "        if _since_recorded(connection):\n            return\n",
        "",
        f"{RIGHTS}::test_a_right_that_was_forged_with_the_fact_taken_away_is_not_recorded_as_found_when_the_workspace_is_opened",
    ),
    Guard(
        "a restored backup revives no password and no key",
        "governance/backup.py",
        "0 if keep_credentials else members.end_all_credentials(store, RESTORED)",
        "0",
        f"{RESTORED}::test_what_was_taken_back_after_a_backup_is_not_alive_after_it_is_restored",
    ),
    Guard(
        "words of documents are marked in the data that agents get",
        "serve/mcp_tools.py",
        "    return fence(mark, label, value) if label and isinstance(value, str) and value else value\n",
        "    return value\n",
        "tests/serve/test_mcp.py::test_words_of_documents_are_between_marks_in_data_too",
    ),
    Guard(
        "a restriction holds before the file is read",
        "workspace/services/documents.py",
        "    if only_for:\n",
        "    if False:\n",
        f"{RESTRICTED}::test_only_for_restricts_a_file_before_anybody_could_have_read_it",
    ),
    Guard(
        "changes of accounts are on record",
        "store/access/members.py",
        '    records.note(connection, store, AccountChanged(f"user:{name}", change, by, detail))\n',
        "    pass\n",
        f"{ACCOUNTS}::test_whatever_an_administrator_does_to_people_is_on_record",
    ),
    Guard(
        "a new password ends keys and sessions",
        "store/access/members.py",
        "if change is AccountChange.password:",
        "if False:",
        f"{ACCOUNTS}::test_a_password_that_is_reset_ends_keys_and_sessions",
    ),
    Guard(
        "the name of the command line is reserved",
        "store/access/members.py",
        "    if looks_local(name):\n",
        "    if False:\n",
        f"{ACCOUNTS}::test_nobody_is_added_under_what_reads_like_the_name_of_the_command_line",
    ),
    Guard(
        "a new person inherits nothing of a former one",
        "store/access/members.py",
        'new = heir or f"{FORMER}{name}:{store.new_id()}"',
        "new = heir or name",
        f"{ACCOUNTS}::test_who_is_added_under_the_name_of_somebody_who_left_inherits_nothing",
    ),
    Guard(
        "a sign-in comes back to the browser that began it",
        "store/access/identities.py",
        "        sign_ins.c.browser == digest_of(browser),\n        sign_ins.c.state",
        "        sign_ins.c.state",
        f"{PROVIDER}::test_an_answer_counts_once_and_in_the_browser_that_set_out_alone",
    ),
    Guard(
        "an id token is for this server and this sign-in",
        "serve/oidc.py",
        "            claims.validate(leeway=SKEW)\n",
        "",
        f"{PROVIDER}::test_a_token_that_does_not_hold_signs_nobody_in",
    ),
    Guard(
        "the key of an id token's signature is the provider's alone",
        "serve/oidc.py",
        "algorithms=[each for each in ALGORITHMS if each in offered]",
        "algorithms=list(offered)",
        f"{PROVIDER}::test_a_token_that_does_not_hold_signs_nobody_in",
    ),
    Guard(
        "another provider's answer is not taken",
        "serve/oidc.py",
        'if by != about["issuer"]:',
        "if False:",
        f"{PROVIDER}::test_another_providers_answer_is_not_taken",
    ),
    Guard(
        "an e-mail address that is not verified names nobody",
        "serve/oidc.py",
        'if settings.oidc_name_claim == "email" and claims.get("email_verified") is not True:',
        "if False:",
        f"{PROVIDER}::test_a_new_account_has_the_name_that_the_provider_vouches_for",
    ),
    Guard(
        "a provider gives nobody what is another's by a name",
        "store/access/identities.py",
        "if members.named(store, name) is not None or _is_known(connection, name):",
        "if members.named(store, name) is not None:",
        f"{PROVIDER}::test_a_name_that_owns_or_may_read_something_is_nobodys_to_take",
    ),
    Guard(
        "a sign-in is linked to the account of who is signed in",
        "serve/routes/sign_in.py",
        "if session is None or session.member.name != sign_in.who:",
        "if session is None:",
        f"{PROVIDER}::test_a_link_that_was_begun_as_one_person_is_not_made_as_another",
    ),
    Guard(
        "nobody is locked out by wrong passwords from elsewhere",
        "serve/limits.py",
        'own = (("name", f"{address} {name}"), ("address", address))',
        'own = (("name", name), ("address", address))',
        f"{ACCOUNTS}::test_wrong_passwords_from_elsewhere_keep_nobody_from_signing_in",
    ),
    Guard(
        "signed records are erased on the word of a signed note only",
        "store/runs/chains.py",
        "        return None if erased.vouches(row) else FaultKind.erasure_unsigned\n",
        "        return None\n",
        f"{FORGED}::test_signed_records_that_are_missing_on_the_word_of_an_unsigned_note_are_a_fault",
    ),
    Guard(
        "no head is signed over an unsigned note of an erasure",
        "governance/audit/witness.py",
        "            raise StoreError(UNSIGNED)\n",
        "            pass\n",
        f"{FORGED}::test_signed_records_that_are_missing_on_the_word_of_an_unsigned_note_are_a_fault",
    ),
    Guard(
        "a note of an erasure is signed with the key of the heads",
        "governance/audit/witness.py",
        "return key in keys and is_signed_by(key, signature, erasure_message(workspace, note))",
        "return is_signed_by(key, signature, erasure_message(workspace, note))",
        f"{FORGED}::test_a_note_that_is_signed_with_another_key_counts_as_unsigned",
    ),
    Guard(
        "whoever asked is held against the record",
        "store/runs/chains.py",
        "if entry and fault is None and place == 0 and not _is_askers(row, entry, handed):",
        "if False:",
        f"{FORGED}::test_a_run_that_is_listed_as_somebody_elses_is_a_fault_unless_it_was_handed_over",
    ),
    Guard(
        "vectors are erased whatever the passage settings were",
        "store/embedding_cache.py",
        "        connection.execute(delete(vectors).where(vectors.c.owner == owner, vectors.c.digest.not_in(used)))\n",
        "        del used\n",
        f"{COPIES}::test_vectors_that_were_made_with_other_passage_settings_are_erased_too",
    ),
    Guard(
        "an original is stored together with its document",
        "ingest/pipeline.py",
        "            return await _read_copy(intake, source, sha, copy, size, new, tally)\n",
        "            intake.blobs.put(sha, copy)\n"
        "            return await _read_copy(intake, source, sha, None, size, new, tally)\n",
        f"{COPIES}::test_the_same_bytes_that_are_added_elsewhere_while_they_are_erased_here_are_kept_there",
    ),
    Guard(
        "evaluations are erased too",
        "workspace/services/records.py",
        "        scrub_evaluations(store, self.context.path)\n",
        "",
        f"{PLACES}::test_what_is_erased_is_in_no_place_of_the_list_and_nowhere_else",
    ),
    Guard(
        "digests of records are salted",
        "store/runs/records.py",
        "plain | {SALT: store.new_id()}",
        "plain",
        f"{PLACES}::test_erased_words_cannot_be_confirmed_by_their_digest",
    ),
    Guard(
        "rights are held against the record",
        "governance/audit/verify.py",
        "            found += _right_faults(connection)\n",
        "",
        f"{RIGHTS}::test_a_right_that_was_written_past_assay_is_a_fault",
    ),
    Guard(
        "stored words are held against the record",
        "governance/audit/verify.py",
        "digest(stored[int(start) : int(end)]) == covered",
        "True",
        f"{RIGHTS}::test_stored_words_that_were_changed_are_a_fault_with_the_record_that_refers_to_them",
    ),
    Guard(
        "the record is called whole up to its last seal alone",
        "governance/audit/verify.py",
        'return f"The record is whole up to its last seal. It is unsealed since {self.unsealed_since}."',
        'return "The record is whole."',
        f"{RIGHTS}::test_records_that_were_cut_or_rewritten_after_the_last_seal_are_not_called_whole",
    ),
    Guard(
        "a place for originals belongs to one workspace",
        "store/blobs.py",
        "    if not blobs.is_owned():\n        raise",
        "    if False:\n        raise",
        f"{SHARED}::test_a_place_that_is_anothers_is_refused_and_stays_as_it_is",
    ),
    Guard(
        "a place with originals of others is not taken",
        "store/blobs.py",
        "if strange := there - owner.uses(there):",
        "if strange := set[str]():",
        f"{SHARED}::test_workspaces_that_share_a_place_already_are_told_and_move_apart",
    ),
    Guard(
        "a restored backup has no places yet",
        "governance/backup.py",
        "            facts.forget_owner_mark(store)\n",
        "",
        f"{SHARED}::test_a_restored_backup_has_no_right_to_the_place_of_the_workspace_it_was_made_of",
    ),
    Guard(
        "a shared knowledge base is searched only when it is accepted",
        "store/access/offers.py",
        "accepted = [base for base in found if said.get(base.id)]",
        "accepted = found",
        f"{OFFERS}::test_what_somebody_shares_is_in_no_search_and_no_list_before_it_is_accepted",
    ),
    Guard(
        "a shared knowledge base can be left",
        "store/access/offers.py",
        'record(connection, base, f"user:{principal.id}", accepted)',
        'record(connection, base, f"user:{principal.id}", True)',
        f"{OFFERS}::test_what_was_accepted_can_be_left_and_accepted_again",
    ),
    Guard(
        "all records form one chain",
        "governance/audit/verify.py",
        "        if row.link != link:\n",
        "        if False:\n",
        "tests/hostile/test_tampering.py",
    ),
    Guard(
        "what somebody may not read any more is withheld from old runs",
        "store/runs/records.py",
        "if body is None or (record.seq and over.covers(record.seq)):",
        "if body is None:",
        "tests/hostile/test_taken_away.py::"
        "test_an_old_run_shows_nothing_from_the_first_mention_on_of_a_document_that_was_taken_away",
    ),
    Guard(
        "erasing removes what records said",
        "store/erasure.py",
        "connection.execute(delete(payloads).where(payloads.c.run == run, payloads.c.seq.in_(part)))",
        "pass",
        "tests/hostile/test_erased.py::test_an_erased_document_is_in_no_file_and_every_chain_verifies",
    ),
    Guard(
        "system calls that are not listed are refused to a parser",
        "ingest/sandbox/restrictions.py",
        "return [*steps, (RETURN, 0, 0, REFUSE)]",
        "return [*steps, (RETURN, 0, 0, ALLOW)]",
        f"{SANDBOX}::test_whatever_a_parser_that_was_taken_over_tries_is_refused",
    ),
    Guard(
        "a parser opens no file in a way that changes it",
        "ingest/sandbox/restrictions.py",
        "NOT_READING = WRITES | 0o20000000",
        "NOT_READING = os.O_CREAT",
        f"{SANDBOX}::test_the_filter_allows_what_is_listed_and_nothing_else",
    ),
    Guard(
        "a parser signals and limits itself alone",
        "ingest/sandbox/restrictions.py",
        "return _with_argument(call, place, allowed, REFUSE)",
        "return _with_argument(call, place, allowed, ALLOW)",
        f"{SANDBOX}::test_whatever_a_parser_that_was_taken_over_tries_is_refused",
    ),
    Guard(
        "a parser reads no file but its libraries",
        "ingest/sandbox/restrictions.py",
        "unprivileged and restrict_files(libc, readable)",
        "unprivileged",
        f"{SANDBOX}::test_whatever_a_parser_that_was_taken_over_tries_is_refused",
    ),
    Guard(
        "a parser has a user namespace of its own",
        "ingest/sandbox/restrictions.py",
        "(apart or libc.unshare(CLONE_NEWUSER) == 0)",
        "True",
        f"{SANDBOX}::test_it_has_no_capabilities_and_a_user_namespace_of_its_own",
    ),
    Guard(
        "a parser has no capabilities",
        "ingest/sandbox/restrictions.py",
        "    libc.capset(head, (ctypes.c_uint32 * 6)())",
        "    _ = head",
        f"{SANDBOX}::test_it_has_no_capabilities_and_a_user_namespace_of_its_own",
    ),
    Guard(
        "the OCR program reads no file but its libraries",
        "ingest/sandbox/restrictions.py",
        "restrict_files(libc, readable, programs=True)",
        "pass",
        "tests/ingest/test_ocr.py::test_a_program_that_was_taken_over_reads_and_writes_nothing",
    ),
    Guard(
        "a process that reads a scan starts threads, and nothing else",
        "ingest/sandbox/restrictions.py",
        "[(ANY_BIT, 0, 1, CLONE_THREAD), (RETURN, 0, 0, ALLOW)]",
        "[(RETURN, 0, 0, ALLOW)]",
        "tests/ingest/test_scans.py::test_a_process_that_may_start_threads_may_start_nothing_else",
    ),
    Guard(
        "a picture that unpacks to too many pixels is not unpacked",
        "ingest/pdf/picture.py",
        "if pixels > MOST_PIXELS:",
        "if pixels < 0:",
        "tests/ingest/test_scans.py::test_a_picture_without_words_says_why",
    ),
    Guard(
        "no two files share a process",
        "ingest/sandbox/runner.py",
        'key = "" if reads else f"',
        'key = "all" if reads else f"',
        "tests/ingest/test_sandbox.py::test_each_file_has_a_process_of_its_own",
    ),
    Guard(
        "a process that has answered is killed before the next file",
        "ingest/sandbox/process.py",
        "        self._drop()\n        own, theirs = socket.socketpair()",
        "        own, theirs = socket.socketpair()",
        "tests/ingest/test_sandbox.py::test_a_process_that_was_taken_over_has_no_part_in_the_next_file",
    ),
    Guard(
        "no file is read where a required guard is missing",
        "ingest/sandbox/process.py",
        "if self._require and self.missing:",
        "if False:",
        f"{SANDBOX}::test_the_process_itself_gets_no_byte_where_guards_are_required",
    ),
    Guard(
        "a missing guard is said",
        "workspace/services/documents.py",
        "(*report.warnings, *describe_missing(workers.missing_guards))",
        "report.warnings",
        f"{SANDBOX}::test_where_guards_are_missing_adding_says_so_once",
    ),
    Guard(
        "pages are drawn in processes of one owner",
        "ingest/sandbox/runner.py",
        'else f"{owner}:{source',
        'else f":{source',
        f"{SANDBOX}::test_pages_of_one_file_come_from_one_process_for_one_owner_only",
    ),
    Guard(
        "pictures of pages are kept for one knowledge base",
        "serve/page_images.py",
        "key = (base, digest, page, width, box)",
        'key = ("", digest, page, width, box)',
        "tests/serve/test_pictures.py::test_a_page_that_somebody_else_saw_is_drawn_again",
    ),
    Guard(
        "pictures of pages are not stored by a browser",
        "serve/routes/documents.py",
        'return Response(picture, media_type="image/png")  # not stored: it must not outlive the right to see it',
        'return Response(picture, media_type="image/png", headers={"Cache-Control": "private, max-age=600"})',
        "tests/serve/test_pictures.py::test_no_browser_and_no_proxy_keeps_a_page",
    ),
    Guard(
        "one upload of a person is read at a time",
        "serve/upload_worker.py",
        "base != work.base and job.who != work.job.who",
        "base != work.base",
        f"{JOBS}::test_the_uploads_of_one_person_do_not_stop_those_of_another",
    ),
    Guard(
        "people whose uploads wait take turns",
        "serve/upload_worker.py",
        "if work.parked and not work.reading:",
        "if False:",
        f"{JOBS}::test_where_all_places_are_taken_people_take_turns",
    ),
    Guard(
        "nobody stores more than their share",
        "serve/limits.py",
        "if self.most and own.stored + own.arriving + size > self.most:",
        "if False:",
        f"{JOBS}::test_who_has_used_up_the_room_is_told_and_nothing_is_kept",
    ),
    Guard(
        "uploads that arrive together share the room",
        "serve/limits.py",
        "own.stored += 0 if failed else self.taken",
        "pass",
        f"{JOBS}::test_uploads_that_arrive_together_share_the_room",
    ),
    Guard(
        "an upload has so many files and no more",
        "serve/upload_files.py",
        "if len(self._files) >= MAX_FILES:",
        "if False:",
        f"{JOBS}::test_an_upload_of_very_many_files_is_refused_and_leaves_nothing_behind",
    ),
    Guard(
        "so many cells of a file are read and no more",
        "ingest/formats/xlsx.py",
        "if cells > out.limits.cells or out.limits.late:",
        "if False:",
        f"{PARTIAL}::test_of_a_table_with_too_many_cells_the_first_ones_are_read",
    ),
    Guard(
        "so many passages of a file are made searchable and no more",
        "ingest/pipeline.py",
        "return _Ready(document, report, pieces[: intake.most_passages])",
        "return _Ready(document, report, pieces)",
        f"{PARTIAL}::test_of_a_file_with_too_many_passages_the_first_ones_can_be_searched",
    ),
    Guard(
        "a parser that runs late returns what it has",
        "ingest/parsed.py",
        "return bool(self.until) and time.process_time() > self.until",
        "return False",
        f"{PARTIAL}::test_a_parser_that_runs_late_returns_what_it_has",
    ),
    Guard(
        "nothing is sent to a model's machine before somebody agrees to it",
        "workspace/services/setup.py",
        "if host not in agreed and not facts.agreed(self.store, host):",
        "if False:",
        f"{SETUP}::test_nothing_is_sent_to_another_machine_before_somebody_agrees_to_it_by_name",
    ),
    Guard(
        "a key stays with the address that it was given for",
        "workspace/services/setup.py",
        'else settings.llm_api_key if same else SecretStr("")',
        "else settings.llm_api_key",
        f"{SETUP}::test_a_key_never_follows_to_another_address",
    ),
    Guard(
        "only an administrator connects a model",
        "serve/routes/setup.py",
        "async def connect_model(given: ModelRequest, server: CurrentServer, who: Administrator)",
        "async def connect_model(given: ModelRequest, server: CurrentServer, who: CurrentPerson)",
        f"{SETUP}::test_only_an_administrator_sees_or_changes_the_model",
    ),
    Guard(
        "only an administrator changes settings",
        "serve/routes/setup.py",
        "async def change_settings(given: SettingsRequest, server: CurrentServer, who: Administrator)",
        "async def change_settings(given: SettingsRequest, server: CurrentServer, who: CurrentPerson)",
        "tests/serve/test_settings_routes.py::test_only_an_administrator_sees_and_changes_settings",
    ),
    Guard(
        "only the one user of a computer names a folder of it",
        "serve/routes/setup.py",
        'if server.serving.auth != "off" or not server.serving.token:',
        "if False:",
        f"{SETUP}::test_nobody_but_the_one_user_of_this_computer_names_a_folder_of_it",
    ),
    Guard(
        "where people share a server, an address is asked for its models only once its machine was agreed to",
        "workspace/services/setup.py",
        "        if shared:\n            self._require_agreement(factory.model_hosts(settings, local=True), agreed)\n",
        "",
        f"{SETUP}::test_the_models_of_an_address_are_listed_for_who_asks_and_a_name_that_is_not_there_is_told",
    ),
    Guard(
        "documents of others are left out where many are marked",
        "workspace/services/documents.py",
        "entry.base in owned and ",
        "",
        "tests/serve/test_document_edits.py::test_what_is_shared_with_somebody_is_left_out_when_they_mark_many",
    ),
    Guard(
        "a suggested question holds no instruction",
        "workspace/suggest.py",
        " and not is_suspicious(words)",
        "",
        "tests/lookup/test_suggest.py::test_no_question_repeats_an_instruction",
    ),
    Guard(
        "a shared thread is read with what its reader may read",
        "workspace/services/threads.py",
        "        scope = self.context.scope()\n        texts",
        "        scope = grants.scope_of(self.store, type(self.principal)(found.who))\n        texts",
        f"{FEEDBACK}::test_a_shared_thread_is_read_as_far_as_its_documents_may_be_read",
    ),
    Guard(
        "a thread is shared by its owner alone",
        "store/threads.py",
        "threads.c.id.in_(granted), threads.c.who != principal.id",
        "threads.c.who != principal.id",
        f"{FEEDBACK}::test_a_shared_thread_is_read_as_far_as_its_documents_may_be_read",
    ),
    Guard(
        "words of feedback are for who may read the documents",
        "store/runs/feedback.py",
        'FeedbackEntry(at, replace(each, words=""), True)',
        "FeedbackEntry(at, each, True)",
        f"{FEEDBACK}::test_nobody_gives_feedback_on_somebody_elses_answer_or_reads_theirs",
    ),
    Guard(
        "feedback is erased with what it is about",
        "store/erasure.py",
        "if notes := notes_about(connection, places_by_run, gone):",
        "if notes := ():",
        f"{FEEDBACK}::test_feedback_is_erased_with_what_it_is_about",
    ),
    Guard(
        "a synthesis shows its model no passage that gives orders",
        "synthesis/read.py",
        "return [each for each in own if not is_command(each.text)]",
        "return own",
        f"{SYNTHESIS}/test_reading.py::test_a_passage_that_instructs_a_model_is_not_shown_and_its_words_are_no_point",
    ),
    Guard(
        "a point of a synthesis needs words of a passage",
        "synthesis/read.py",
        "return (nearest, False) if nearest and _is_quotable(nearest.words) else None",
        'return Claim("", (key,), quote=own.quote), False',
        f"{SYNTHESIS}/test_reading.py::test_a_point_whose_words_stand_nowhere_is_not_taken",
    ),
    Guard(
        "the reason of a relation is judged",
        "synthesis/plan.py",
        "if verdict.verdict is Verdict.supported:",
        "if verdict:",
        f"{SYNTHESIS}/test_planning.py::test_a_reason_that_does_not_follow_is_dropped_and_said",
    ),
    Guard(
        "a topic brings no name, number or instruction of its own",
        "synthesis/plan.py",
        'claim = unsupported(claim, "it is too long, gives orders, or names what no document has")',
        "pass",
        f"{SYNTHESIS}/test_planning.py::"
        "test_a_topic_or_theme_that_brings_a_name_of_its_own_or_an_instruction_is_dropped",
    ),
    Guard(
        "the pass for flow adds no name, number or date",
        "synthesis/narrate.py",
        "if facts.missing_facts(text, known, facts.lowercase_stems(known)):",
        "if not text:",
        f"{SYNTHESIS}/test_narrating.py::test_the_pass_adds_no_name_number_or_date",
    ),
    Guard(
        "a sentence of a synthesis cites only evidence of its run",
        "synthesis/narrate.py",
        "split, _ = claims.split_claims(sentence.text, sentence.cites[:CITES], of.known.keys())",
        "split, _ = claims.split_claims(sentence.text, sentence.cites[:CITES], sentence.cites)",
        f"{SYNTHESIS}/test_narrating.py::test_keys_that_this_run_does_not_know_are_cited_by_nothing",
    ),
    Guard(
        "no request leaves before its reservation is on disk",
        "models/meter.py",
        "await self.ledger.flushed()  # no request leaves before its reservation is on disk",
        "pass",
        f"{FLUSHES}::test_every_event_is_on_disk_when_it_is_shown_and_every_reservation_when_its_request_leaves",
    ),
    Guard(
        "no event is shown before it is on disk",
        "agent/context.py",
        "await self.flushed()",
        "pass",
        f"{FLUSHES}::test_every_event_is_on_disk_when_it_is_shown_and_every_reservation_when_its_request_leaves",
    ),
    Guard(
        "what another process has not flushed is flushed by who shows it",
        "store/database.py",
        "self.flush.now()",
        "pass",
        f"{FLUSHES}::test_what_another_reader_is_shown_is_on_disk",
    ),
    Guard(
        "after a flush that failed nothing is shown",
        "store/dialect.py",
        "self._failed = error",
        "pass",
        f"{FLUSHES}::test_after_a_failed_flush_nothing_is_shown_any_more",
    ),
)


def broken(guard: Guard, copy: Path) -> str:
    """Why the guard's test did not fail with the guard taken out; empty if it did."""
    file = copy / "assay" / guard.file
    whole = (SOURCE / guard.file).read_text(encoding="utf-8")
    if whole.count(guard.words) != 1:
        return f"its words stand {whole.count(guard.words)} times in {guard.file}"
    file.write_text(whole.replace(guard.words, guard.instead), encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *guard.test.split()],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""  # it goes on for ever: that is no pass
    finally:
        file.write_text(whole, encoding="utf-8")
    return (
        "" if done.returncode == 1 and "FAILED" in done.stdout else f"{guard.test} says: {done.stdout[-300:].strip()}"
    )


def page() -> str:
    rows = [
        f"| {each.name} | `{each.file}` | `{each.test.rpartition('::')[2].rpartition('/')[2]}` |" for each in GUARDS
    ]
    head = ["# Guards", "", "Written by `tests/hostile/guards.py`. [Security](security.md) says what they are for."]
    return "\n".join([*head, "", "| guard | taken out in | test that then fails |", "|---|---|---|", *rows, ""])


def main(names: list[str]) -> int:
    if names == ["--write"]:
        (ROOT / "docs" / "guards.md").write_text(page(), encoding="utf-8")
        return 0
    selected = [each for each in GUARDS if not names or any(name in each.name for name in names)]
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="guards-") as folder:
        shutil.copytree(SOURCE, Path(folder) / "assay", ignore=shutil.ignore_patterns("__pycache__"))
        for guard in selected:
            began = time.monotonic()
            why = broken(guard, Path(folder))
            wrong += bool(why)
            result = f"NOT SEEN TO FAIL: {why}" if why else "its test fails without it"
            print(f"{guard.name}: {result} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(selected) - wrong} of {len(selected)} guards are tested.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
