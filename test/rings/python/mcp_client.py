import asyncio
import json
import os
import urllib.request

import mcp
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from check import URL, check

DESK = os.environ["RING_DESK"]
AGENT = os.environ["RING_AGENT"]


async def ask(path, method="GET"):
    """What the ring does: starts the gateway anew, and is the hub that never answers."""

    def fetch():
        with urllib.request.urlopen(urllib.request.Request(f"{DESK}/{path}", method=method)) as answer:
            assert answer.status == 200

    await asyncio.to_thread(fetch)


async def told(client, name, **args):
    result = await client.call_tool(name, args)
    assert not result.is_error, result
    return json.loads(result.content[0].text)


async def names(client):
    return [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]


def tries(mode, revision):
    def connected():
        http = create_mcp_http_client(headers={"X-svc-Agent": AGENT})
        return mcp.Client(streamable_http_client(f"{URL}/mcp/admin", http_client=http), mode=mode)

    @check(f"{mode}: lists the tools")
    async def _():
        async with connected() as client:
            assert client.protocol_version == revision, client.protocol_version
            all_names = await names(client)
            assert len(all_names) > 50 and {"slot_list", "model_pull", "approval_status"} <= set(all_names), all_names

    @check(f"{mode}: calls a tool")
    async def _():
        async with connected() as client:
            assert "agent" in [slot["name"] for slot in (await told(client, "slot_list"))["slots"]]

    @check(f"{mode}: reads why a tool failed")
    async def _():
        async with connected() as client:
            result = await client.call_tool("slot_status", {"name": "nobody"})
            answer = json.loads(result.content[0].text)
            assert result.is_error and (answer["http_status"], answer["error"]["code"]) == (404, "slot.not_found"), answer

    @check(f"{mode}: is told that an operator has to approve")
    async def _():
        async with connected() as client:
            args = {"model_id": "tiny", "hf_repo": "ring/tiny", "hf_filename": "tiny.gguf"}
            pending = await told(client, "model_pull", **args)
            assert pending["status"] == "pending_approval", pending
            status = await told(client, "approval_status", approval_id=pending["approval_id"])
            assert status["approval"]["state"] == "pending", status

    @check(f"{mode}: a call that is cancelled has told progress, and ends in the gateway")
    async def _():
        repo = f"ring/{AGENT}-{mode}"
        steps = []

        async def on_progress(progress, total, message):
            steps.append(message)

        async with connected() as client:
            call = asyncio.create_task(client.call_tool("model_inspect", {"hf_repo": repo}, progress_callback=on_progress))
            await ask(f"asked/{repo}")
            call.cancel()
            await ask(f"left/{repo}")
            await asyncio.gather(call, return_exceptions=True)
            assert call.cancelled() and steps == ["model_inspect begins"], (call, steps)

    @check(f"{mode}: does not notice that the gateway was restarted")
    async def _():
        async with connected() as client:
            await told(client, "slot_list")
            await ask("restart", "POST")
            assert "agent" in [slot["name"] for slot in (await told(client, "slot_list"))["slots"]]
            assert len(await names(client)) > 50


tries("legacy", "2025-11-25")
tries("auto", "2026-07-28")
