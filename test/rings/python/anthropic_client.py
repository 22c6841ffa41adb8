from typing import List

import anthropic

from check import CALLER, MESSAGES, SENTENCE, TOOL, URL, check, fits_tool, requests_of

client = anthropic.Anthropic(base_url=URL, api_key="anything")
QUESTION = {"model": "agent", "max_tokens": 200, "messages": MESSAGES}


@check("models")
def _():
    rows = list(client.models.list())
    assert "svc/agent" in [row.id for row in rows]
    assert all(row.display_name and row.created_at.year > 2000 for row in rows)
    assert client.models.retrieve("svc/agent").id == "svc/agent"


@check("a model that nobody knows is refused once")
def _():
    took, error = requests_of(lambda: client.messages.create(**{**QUESTION, "model": "nobody"}))
    assert isinstance(error, anthropic.NotFoundError), error
    assert took == 1, took


@check("messages")
def _():
    answer = client.messages.create(**QUESTION, system="Be brief.")
    assert answer.content[0].text == SENTENCE and answer.stop_reason == "end_turn"


@check("messages, streamed as plain events")
def _():
    types = [event.type for event in client.messages.create(**QUESTION, stream=True)]
    assert types[0] == "message_start" and types[-1] == "message_stop", types


@check("messages.stream")
def _():
    with client.messages.stream(**QUESTION) as stream:
        assert "".join(stream.text_stream) == SENTENCE
        assert stream.get_final_message().usage.output_tokens > 10


@check("a tool, whole and streamed, and its result")
def _():
    tools = [{"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}]
    order = {**QUESTION, "model": CALLER, "tools": tools, "tool_choice": {"type": "any"}}
    whole = client.messages.create(**order)
    fits_tool(next(block.input for block in whole.content if block.type == "tool_use"))
    with client.messages.stream(**order) as stream:
        call = next(block for block in stream.get_final_message().content if block.type == "tool_use")
    fits_tool(call.input)
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "done"}]}
    messages = [*MESSAGES, {"role": "assistant", "content": whole.content[-1:]}, result]
    result["content"][0]["tool_use_id"] = whole.content[-1].id
    assert client.messages.create(**{**QUESTION, "messages": messages, "tools": tools}).content


@check("beta.messages.tool_runner")
def _():
    given = []

    @anthropic.beta_tool
    def embed_text(input: List[str]) -> str:
        """Compares texts"""
        given.append({"input": input})
        return "done"

    order = {**QUESTION, "model": CALLER, "tools": [embed_text], "tool_choice": {"type": "any"}}
    reasons = [message.stop_reason for message in client.beta.messages.tool_runner(**order, max_iterations=2)]
    assert reasons[0] == "tool_use" and len(reasons) == 2, reasons
    assert given
    for args in given:
        fits_tool(args)


@check("with_raw_response")
def _():
    raw = client.messages.with_raw_response.create(**QUESTION)
    assert raw.headers["request-id"] and raw.parse().content[0].text == SENTENCE


@check("count_tokens")
def _():
    assert client.messages.count_tokens(model="agent", messages=MESSAGES).input_tokens > 0


@check("async")
async def _():
    async with anthropic.AsyncAnthropic(base_url=URL, api_key="anything") as many:
        async with many.messages.stream(**QUESTION) as stream:
            assert await stream.get_final_text() == SENTENCE
