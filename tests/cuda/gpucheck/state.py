"""What is known of the checks: a file for each with its attempts, beside the files that it made.

A check is over when it passed, when it is unfit by nature, when it failed twice, or when it was cut off three times: by
the end of a sitting, or by what ended us as well. One whose files are not all there, as after an archive that was cut
off, has not passed."""

import contextlib
import functools
import hashlib
import json
import os
import re

MOST = {"failed": 2, "cut off": 3}  # attempts that ended so
OUTCOMES = ("passed", "unfit", *MOST)


def slug(name):
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()


def digest(path):
    """Asked of megabytes for every check that might be the next: what has not changed is not read again."""
    found = os.stat(path)
    return digest_of(path, found.st_ino, found.st_size, found.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def digest_of(path, *_):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def writable(path, mode="w"):
    """For text in which there may be names of files that are no text."""
    return open(path, mode, encoding="utf-8", errors="backslashreplace")


def cut_off(why, seconds=0):
    return {"outcome": "cut off", "gives": {}, "seconds": seconds, "rows": [{"row": "cut off", "ok": False, "why": why}]}


def is_record(what):
    """Whatever a file of that name holds."""
    if not (isinstance(what, dict) and isinstance(what.get("check"), str) and isinstance(what.get("files"), dict)):
        return False
    return isinstance(what.get("attempts"), list) and all(map(is_attempt, what["attempts"]))


def is_attempt(what):
    if not (isinstance(what, dict) and what.get("outcome") in OUTCOMES and isinstance(what.get("gives"), dict)):
        return False
    return isinstance(what.get("rows"), list) and all(isinstance(row, dict) and {"row", "ok"} <= row.keys() for row in what["rows"])


class State:
    def __init__(self, folder):
        self.folder = folder
        for name in ("results", "logs", "plans", "graphs", "traces", "profiles"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        self.records, self.going_on = {}, None  # the check whose last attempt has begun
        for name in sorted(os.listdir(self.path("results"))):
            if name.endswith(".json"):
                record = self.load(os.path.join("results", name))
                if is_record(record):
                    self.records[record["check"]] = record

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def load(self, name):
        """JSON, or None where there is none."""
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    def save(self, name, what):
        path = self.path(name)
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(what, file, indent=1)
            file.write("\n")
        os.replace(path + ".part", path)

    def blocked_by(self, needs):
        """The first of these checks that cannot pass any more, with its outcome; or None."""
        return next(((need, self.outcome(need)) for need in needs if self.outcome(need) in ("failed", "unfit")), None)

    # --- Attempts

    def attempts(self, name):
        return self.records.get(name, {}).get("attempts", [])

    def begin(self, name):
        """Of an attempt that ends us as well nobody else would know: it would be made again and again."""
        self.keep(name, cut_off("the check came to its end meanwhile"), [])
        self.going_on = name

    def keep(self, name, attempt, files):
        """An attempt that came to an end, and the files that others need of it."""
        attempts = self.attempts(name)[:-1] if self.going_on == name else self.attempts(name)
        self.put(name, [*attempts, attempt], {file: digest(self.path(file)) for file in files})

    def withdraw(self, name):
        """The attempt that has begun counts for nothing; where that cannot be written it stays cut off."""
        with contextlib.suppress(OSError):
            self.put(name, self.attempts(name)[:-1], {})

    def put(self, name, attempts, files):
        record = {"check": name, "attempts": attempts, "files": files}
        self.save(os.path.join("results", slug(name) + ".json"), record)
        self.records[name], self.going_on = record, None

    def outcome(self, name):
        """passed, unfit, failed or None: not known, or to be tried again."""
        attempts = self.attempts(name)
        if not attempts:
            return None
        last = attempts[-1]["outcome"]
        if last in MOST:
            over = any(sum(attempt["outcome"] == how for attempt in attempts) >= most for how, most in MOST.items())
            return "failed" if over else None
        return last if self.has_files(name) else None

    def is_cut_off(self, name):
        """By the end of a sitting, and to be tried again: neither passed nor failed so far."""
        attempts = self.attempts(name)
        return bool(attempts) and attempts[-1]["outcome"] == "cut off" and self.outcome(name) is None

    def has_files(self, name):
        for file, sha256 in self.records[name]["files"].items():
            try:
                if digest(self.path(file)) != sha256:
                    return False
            except OSError:
                return False
        return True

    def gives(self, name, key):
        """What a check gave to those after it, in its last attempt that got so far; None where none did."""
        return next((attempt["gives"][key] for attempt in reversed(self.attempts(name)) if key in attempt["gives"]), None)

    def rows(self, name):
        return [row for attempt in self.attempts(name)[-1:] for row in attempt["rows"]]
