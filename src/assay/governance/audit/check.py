#!/usr/bin/env python3
"""Checks a bundle that `assay export` wrote: python3 check.py BUNDLE.zip [--key PUBLIC_KEY]

Needs nothing but Python and trusts nothing in the bundle. Each payload is compared with its digest, each record with the one
before it, the last record with the signed head, and the signature with the key (Ed25519, RFC 8032).
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
import zlib
from pathlib import Path

START = "0" * 64
MANIFEST, SIGNATURE, RECORDS, PROOF, QUOTATIONS = (
    "manifest.json",
    "manifest.sig",
    "records.jsonl",
    "proof.json",
    "quotations.jsonl",
)


class InvalidBundle(Exception):
    """The first thing that is wrong."""


# --- Ed25519 --------------------------------------------------------------------------------------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def _add(a, b):
    """The sum of two points in extended coordinates."""
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    w, x, y, z = f - e, h - g, h + g, f + e
    return w * x % P, y * z % P, x * y % P, w * z % P


def _multiply(number, point):
    total = (0, 1, 1, 0)
    while number:
        if number & 1:
            total = _add(total, point)
        point = _add(point, point)
        number >>= 1
    return total


def _equal_points(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def _decode_point(data):
    """The point that 32 bytes encode, or None."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = _decode_point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def verify_signature(key, signature, message):
    """Whether the signature of the message is valid for the public key. All three are bytes."""
    if len(key) != 32 or len(signature) != 64:
        return False
    owner, r = _decode_point(key), _decode_point(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if owner is None or r is None or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    return _equal_points(_multiply(s, BASE), _add(r, _multiply(k, owner)))


# --- the bundle -----------------------------------------------------------------------------------------------------


def canonical_json(value):
    """Canonical JSON: equal values have equal digests."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


def read_bundle(path):
    """Names and contents of a bundle, packed or unpacked."""
    place = Path(path)
    if place.is_dir():
        return {
            each.relative_to(place).as_posix(): each.read_bytes() for each in sorted(place.rglob("*")) if each.is_file()
        }
    try:
        with zipfile.ZipFile(place) as packed:
            names = packed.namelist()
            if len(set(names)) != len(names):
                raise InvalidBundle("the bundle holds two files of one name")
            return {name: packed.read(name) for name in names if not name.endswith("/")}
    except (OSError, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, RuntimeError, EOFError) as error:
        raise InvalidBundle(f"the bundle cannot be opened: {error}") from None


def check(files, key=""):
    """What was checked, in lines; raises `InvalidBundle` at the first thing that is wrong."""
    manifest, public = _manifest(files, key)
    yield f"the list of {len(manifest['files'])} files is signed by {public}, and each file is what it says"
    records = [json.loads(line) for line in files[RECORDS].splitlines()]
    _chain(records, manifest["run"])
    yield f"{len(records)} records of run {manifest['run']} form one chain, {records[0]['at']} to {records[-1]['at']}"
    payloads, withheld = _payloads(files, records, manifest)
    kept = f"; {withheld} are withheld or were erased, and have their digest only" if withheld else ""
    yield f"{len(payloads)} payloads are what their records say{kept}"
    quoted, left = _quotations(files, payloads)
    yield f"{quoted} quotations are the words that the records refer to" + (f"; {left} are not shown" if left else "")
    yield _cited(payloads, withheld)
    yield _approved(payloads, records)
    yield _sealed(files, records, public)


def _manifest(files, key):
    for name in (MANIFEST, SIGNATURE, RECORDS, PROOF, QUOTATIONS):
        if name not in files:
            raise InvalidBundle(f"the bundle has no {name}")
    manifest = json.loads(files[MANIFEST])
    public = manifest["key"]
    if key and public != key.strip().lower():
        raise InvalidBundle(f"the bundle is signed by {public}, and not by the key that you named")
    signature = bytes.fromhex(files[SIGNATURE].decode().strip())
    spelling = files[SIGNATURE] == signature.hex().encode() + b"\n"
    if not spelling or not verify_signature(bytes.fromhex(public), signature, files[MANIFEST]):
        raise InvalidBundle(f"{MANIFEST} was not signed with the key it names")
    listed = manifest["files"]
    for name in sorted({*listed, *files} - {MANIFEST, SIGNATURE}):
        if name not in listed:
            raise InvalidBundle(f"{name} is not in the list of files")
        if name not in files:
            raise InvalidBundle(f"{name} is missing")
        if sha(files[name]) != listed[name]:
            raise InvalidBundle(f"{name} was changed")
    return manifest, public


def _chain(records, run):
    if not records:
        raise InvalidBundle("there are no records")
    prev = START
    for seq, record in enumerate(records):
        if record["seq"] != seq:
            raise InvalidBundle(f"record {seq} is missing")
        covered = [record[name] for name in ("run", "seq", "at", "kind", "digest", "prev")]
        if record["run"] != run or record["prev"] != prev or sha(canonical_json(covered)) != record["hash"]:
            raise InvalidBundle(f"record {seq} was changed")
        prev = record["hash"]


def _payloads(files, records, manifest):
    payloads, withheld = {}, 0
    for record in records:
        seq = record["seq"]
        name = f"payloads/{seq:05}-{record['kind']}.json"
        if name in files:
            if sha(files[name]) != record["digest"]:
                raise InvalidBundle(f"the payload of record {seq} was changed")
            payloads[seq] = (record["kind"], json.loads(files[name]))
        elif seq in manifest["withheld"]:
            withheld += 1
        else:
            raise InvalidBundle(f"the payload of record {seq} is missing")
    return payloads, withheld


def _objects_in(value):
    """Every JSON object in a value, itself included."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _objects_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _objects_in(each)


def references(payload):
    """The places in documents that a payload refers to, each with the digest of its words."""
    return [_reference(each) for each in _objects_in(payload) if {"doc_id", "start", "end", "digest"} <= each.keys()]


def _reference(each):
    return tuple(each[name] for name in ("doc_id", "start", "end", "digest"))


def _quotations(files, payloads):
    objects = [each for _, payload in payloads.values() for each in _objects_in(payload)]
    referred = {each for _, payload in payloads.values() for each in references(payload)}
    words = {}
    for line in files[QUOTATIONS].splitlines():
        quotation = json.loads(line)
        if _reference(quotation) not in referred:
            raise InvalidBundle(f"no record refers to {quotation['doc_id']} {quotation['start']}–{quotation['end']}")
        if sha(quotation["text"]) != quotation["digest"]:
            raise InvalidBundle(
                f"the words of {quotation['doc_id']} {quotation['start']}–{quotation['end']} were changed"
            )
        words[_reference(quotation)] = quotation["text"]
    for each in objects:
        if isinstance(each.get("quote"), dict) and isinstance(each.get("passage"), dict):
            _check_inside(each["quote"], each["passage"], words)
    return len(words), len(referred) - len(words)


def _check_inside(quote, passage, words):
    """A piece of evidence quotes its passage, word for word."""
    first, last = quote["start"] - passage["start"], quote["end"] - passage["start"]
    inside = quote["doc_id"] == passage["doc_id"] and 0 <= first <= last <= passage["end"] - passage["start"]
    shown, around = words.get(_reference(quote)), words.get(_reference(passage))
    if not inside or (shown is not None and around is not None and around[first:last] != shown):
        raise InvalidBundle(f"a quotation of {quote['doc_id']} {quote['start']}–{quote['end']} is not in its passage")


def _cited(payloads, withheld):
    answers = [payload["answer"] for kind, payload in payloads.values() if kind == "Answered"]
    if not answers:
        return "there is no answer in the bundle to hold against its evidence"
    evidence = {
        each["key"]
        for _, payload in payloads.values()
        for each in _objects_in(payload)
        if "key" in each and "quote" in each
    }
    cited = {cite for each in _objects_in(answers[-1]) for cite in each.get("cites", ())}
    if not withheld and cited - evidence:
        raise InvalidBundle(f"the answer cites {sorted(cited - evidence)[0]}, which is in no record")
    return f"{len(cited & evidence)} pieces of evidence that the answer cites are on record"


HELD = ("AwaitingReview", "Held")  # that an answer waits for a reviewer; "Held" in records of earlier versions


def _approved(payloads, records):
    """An answer that was held is delivered under an approval of exactly that."""
    approved = set()
    for record in records:
        kind, payload = payloads.get(record["seq"], ("", {}))
        if kind == "Reviewed" and payload["decision"] == "approve":
            approved.add(payload["seal"])
        if kind == "Answered" and any(each["kind"] in HELD for each in records):
            if payload.get("seal") not in approved:
                raise InvalidBundle("the answer was delivered without a reviewer's approval of exactly that")
            return "the answer was delivered under a reviewer's approval of exactly that"
    return "a reviewer was asked" if any(each["kind"] in HELD for each in records) else "no reviewer was asked"


def _sealed(files, records, public):
    """The run's last record, and those of others after it, lead to the signed head."""
    proof, last = json.loads(files[PROOF]), records[-1]
    head, link, n = proof["head"], proof["before"], last["n"]
    for hash in [last["hash"], *proof["after"]]:
        link = sha(canonical_json([n, hash, link]))
        n += 1
    if (n - 1, link) != (head["n"], head["link"]):
        raise InvalidBundle("the last record is not in the signed head")
    signed = canonical_json(["assay seal", head["workspace"], head["n"], head["link"], head["at"]]).encode()
    if head["key"] != public or not verify_signature(bytes.fromhex(public), bytes.fromhex(head["signature"]), signed):
        raise InvalidBundle("the head was not signed with the key that the bundle names")
    return f"its last record is number {last['n']} of the {head['n']} that were signed at {head['at']}"


LONGEST_LINE = 400


def printable(line):
    """A line as it may be printed: what the bundle says can neither end the line, hide words, nor control the terminal.
    Runs of blanks are one blank, so that no words are pushed to a line of their own."""
    shown = "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in line)
    shown = " ".join(shown.split())
    return shown if len(shown) <= LONGEST_LINE else shown[:LONGEST_LINE] + "…"


def say(line):
    sys.stdout.write(printable(line) + "\n")


def main(words):
    key = ""
    if "--key" in words and words.index("--key") + 1 < len(words):
        at = words.index("--key")
        key = words[at + 1]
        words = words[:at] + words[at + 2 :]
    if len(words) != 1 or words[0].startswith("-"):
        sys.stderr.write("Usage: python3 check.py BUNDLE [--key PUBLIC_KEY]\n")
        return 2
    try:
        for line in check(read_bundle(words[0]), key):
            say(f"ok: {line}")
    except InvalidBundle as bad:
        say(f"BAD: {bad}")
        return 1
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        say(f"BAD: the bundle is not of the form it should be ({type(error).__name__}: {error})")
        return 1
    named = "" if key else " Whether that key is the right one, only its owner can say: compare it, or use --key."
    say(f"The bundle is whole.{named}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
