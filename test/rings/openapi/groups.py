"""Makes one typed call of every group of the document with the client that was generated from it. Prints a line for each."""
import importlib
import inspect
import json
import os
import pkgutil
import traceback
import typing

import gateway_client.api
from gateway_client import Client

with open(os.environ["RING_DOCUMENT"], encoding="utf-8") as file:
    document = json.load(file)
client = Client(base_url=os.environ["RING_URL"], timeout=120, raise_on_unexpected_status=True)


def operations():
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def module_of(operation_id):
    wanted = operation_id.lower()
    for group in pkgutil.iter_modules(gateway_client.api.__path__):
        package = importlib.import_module(f"gateway_client.api.{group.name}")
        for module in pkgutil.iter_modules(package.__path__):
            if module.name.replace("_", "") == wanted:
                return importlib.import_module(f"{package.__name__}.{module.name}")
    raise LookupError(f"no call was generated for {operation_id}")


def call(operation):
    function = module_of(operation["operationId"]).sync_detailed
    arguments = {"client": client}
    for parameter in operation["parameters"]:
        if parameter["required"]:
            arguments[parameter["name"]] = parameter["schema"]["examples"][0]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        kinds = typing.get_args(inspect.signature(function).parameters["body"].annotation) or [
            inspect.signature(function).parameters["body"].annotation
        ]
        body = next(kind for kind in kinds if hasattr(kind, "from_dict"))
        arguments["body"] = body.from_dict(content["example"])
    return function(**arguments)


def is_simple(method, path, operation):
    """What can be asked of any gateway, and ends."""
    answers = next(iter(operation["responses"].values())).get("content", {})
    return method == "get" and not operation["parameters"] and "application/json" in answers


def can_be_served(method, path, operation):
    contents = operation.get("requestBody", {}).get("content", {})
    return path in ("/v1/chat/completions", "/v1/embeddings", "/v1/completions") or (
        path.startswith("/v1/") and "application/json" in contents
    )


for group in [tag["name"] for tag in document["tags"]]:
    mine = [operation for operation in operations() if operation[2]["tags"][0] == group]
    try:
        simple = next((it for it in mine if is_simple(*it)), None)
        served = next((it for it in mine if can_be_served(*it)), None)
        some = served or simple or mine[0]
        answer = call(some[2])
        if simple is some or some[1] in ("/v1/chat/completions", "/v1/embeddings"):
            assert answer.status_code == 200, f"{answer.status_code} {answer.content[:300]!r}"
        if answer.status_code != 204:
            assert answer.parsed is not None, f"{some[0]} {some[1]} answered {answer.status_code}, which the client cannot read"
        print(json.dumps({"name": f"{group}: {some[0].upper()} {some[1]}"}), flush=True)
    except Exception:
        print(json.dumps({"name": group, "error": traceback.format_exc()[-2000:]}), flush=True)
