"""Prints which tests of two reports (pytest's --junitxml) end differently, or fail for different reasons; exit code 1
when there are any."""
import re
import sys
from xml.etree import ElementTree

# what differs from one run to the next: addresses in memory, times, ids, ports, temporary folders
RANDOM = re.compile(r"0x[0-9a-f]+|\b\d+\.\d+(?:e-?\d+)?\b|\b\d{9,}\b|\b(?:chatcmpl|msg|resp|call)[-_]\w+|:\d{4,5}\b|/tmp/\S+")


def ends(path):
    tests = {}
    for case in ElementTree.parse(path).iter("testcase"):
        bad = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        reason = "" if bad is None else (bad.get("message") or "").strip()
        tests[f"{case.get('classname')}::{case.get('name')}"] = ("passed" if bad is None else bad.tag, reason)
    return tests


def same(one, other):
    return one[0] == other[0] and RANDOM.sub("~", one[1]) == RANDOM.sub("~", other[1])


direct, gateway = (ends(path) for path in sys.argv[1:3])
different = [name for name in direct if not same(direct[name], gateway.get(name, ("missing", "")))]
for name in different:
    (here, why), (there, because) = direct[name], gateway.get(name, ("missing", ""))
    print(f"{name}\n  direct: {here} {why}\n  gateway: {there} {because}")
count = {end: sum(1 for ended, _ in direct.values() if ended == end) for end in ("passed", "failure", "error", "skipped")}
print(f"{len(direct)} tests, direct: {count}; {len(different)} end differently through the gateway")
sys.exit(1 if different else 0)
