import os

from check import CALLER, MESSAGES, SENTENCE, TOOL, URL, check, fits_tool
from ollama import AsyncClient, Client, ResponseError

HOST = os.environ.get("RING_OLLAMA", URL)
client = Client(host=HOST)


@check("list")
def _():
    assert "svc/agent:latest" in [row.model for row in client.list().models]


@check("show")
def _():
    assert "completion" in client.show("agent").capabilities


@check("chat")
def _():
    answer = client.chat(model="agent", messages=MESSAGES)
    assert answer.message.content == SENTENCE
    assert answer.done_reason == "stop" and answer.eval_count > 10 and answer.total_duration > 0


@check("chat, streamed")
def _():
    parts = list(client.chat(model="agent:latest", messages=MESSAGES, stream=True))
    assert "".join(part.message.content for part in parts) == SENTENCE
    assert parts[-1].done


@check("chat, asynchronous")
async def _():
    text = ""
    async for part in await AsyncClient(host=HOST).chat(model="agent", messages=MESSAGES, stream=True):
        text += part.message.content
    assert text == SENTENCE


@check("chat with a tool")
def _():
    answer = client.chat(model=CALLER, messages=MESSAGES, tools=[{"type": "function", "function": TOOL}])
    fits_tool(dict(answer.message.tool_calls[0].function.arguments))


@check("generate")
def _():
    assert client.generate(model="agent", prompt="Who are you?").response == SENTENCE
    assert "".join(part.response for part in client.generate(model="agent", prompt="x", stream=True)) == SENTENCE


@check("embed")
def _():
    assert len(client.embed(model="embed", input=["one", "two"]).embeddings) == 2
    assert len(client.embeddings(model="embed", prompt="one").embedding) > 10


@check("ps")
def _():
    assert "agent:latest" in [row.model for row in client.ps().models]


@check("copy, create and delete")
def _():
    assert client.copy("agent", "mine").status == "success"
    assert client.create(model="other", from_="agent").status == "success"
    assert client.delete("mine").status == "success"
    assert client.delete("other").status == "success"


@check("a model that nothing knows")
def _():
    try:
        client.chat(model="nobody", messages=MESSAGES)
    except ResponseError as error:
        assert error.status_code == 404 and "nobody" in error.error
    else:
        raise AssertionError("it did not fail")


