"""Prints which tests of two reports (pytest's --junitxml) end differently; exit code 1 when there are any."""
import sys
from xml.etree import ElementTree


def ends(path):
    tests = {}
    for case in ElementTree.parse(path).iter("testcase"):
        bad = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        reason = "" if bad is None else (bad.get("message") or "").strip().split("\n")[0]
        tests[f"{case.get('classname')}::{case.get('name')}"] = ("passed" if bad is None else bad.tag, reason)
    return tests


direct, gateway = (ends(path) for path in sys.argv[1:3])
different = [name for name in direct if gateway.get(name, ("missing", ""))[0] != direct[name][0]]
for name in different:
    (here, why), (there, because) = direct[name], gateway.get(name, ("missing", ""))
    print(f"{name}\n  direct: {here} {why}\n  gateway: {there} {because}")
count = {end: sum(1 for ended, _ in direct.values() if ended == end) for end in ("passed", "failure", "error", "skipped")}
print(f"{len(direct)} tests, direct: {count}; {len(different)} end differently through the gateway")
sys.exit(1 if different else 0)
