import asyncio
import base64
import json
import time

import openai
from pydantic import BaseModel
from typing import Literal

from check import BASE, CALLER, MEDIA, MESSAGES, SENTENCE, TOOL, check, fits_tool, requests_of, wav

client = openai.OpenAI(base_url=BASE, api_key="anything")
FUNCTION = {"type": "function", "function": TOOL}


class State(BaseModel):
    mood: Literal["good", "bad"]
    sure: bool


@check("models.list and models.retrieve")
def _():
    assert "svc/agent" in [model.id for model in client.models.list()]
    assert client.models.retrieve("svc/agent").id == "svc/agent"


@check("a batch, from its file to its answers")
def _():
    row = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "agent", "messages": MESSAGES}}
    lines = "\n".join(json.dumps(each) for each in (row, {**row, "custom_id": "b", "body": {**row["body"], "model": "nobody"}}))
    file = client.files.create(file=("requests.jsonl", lines.encode()), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    end = time.monotonic() + 120
    while batch.status != "completed" and time.monotonic() < end:
        time.sleep(0.1)
        batch = client.batches.retrieve(batch.id)
    assert (batch.status, batch.request_counts.completed, batch.request_counts.failed) == ("completed", 1, 1)
    answer = json.loads(client.files.content(batch.output_file_id).text)
    assert answer["response"]["body"]["choices"][0]["message"]["content"] == SENTENCE
    assert json.loads(client.files.content(batch.error_file_id).text)["response"]["status_code"] == 404
    assert batch.id in [each.id for each in client.batches.list()]
    assert client.files.delete(file.id).deleted


@check("chat")
def _():
    answer = client.chat.completions.create(model="agent", messages=[{"role": "system", "content": "Be brief."}, *MESSAGES])
    assert answer.choices[0].message.content == SENTENCE
    assert answer.usage.total_tokens > 0


@check("chat, streamed")
def _():
    chunks = list(client.chat.completions.create(model="agent", messages=MESSAGES, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == SENTENCE
    assert chunks[-1].usage.completion_tokens > 10


@check("chat.completions.stream")
def _():
    with client.chat.completions.stream(model="agent", messages=MESSAGES) as stream:
        text = "".join(event.delta for event in stream if event.type == "content.delta")
        assert text == SENTENCE
        assert stream.get_final_completion().choices[0].message.content == SENTENCE


@check("chat.completions.parse, and streamed")
def _():
    answer = client.chat.completions.parse(model="agent", messages=MESSAGES, response_format=State)
    assert isinstance(answer.choices[0].message.parsed, State)
    with client.chat.completions.stream(model="agent", messages=MESSAGES, response_format=State) as stream:
        assert isinstance(stream.get_final_completion().choices[0].message.parsed, State)


@check("a forced tool, whole and streamed")
def _():
    order = {"model": CALLER, "messages": MESSAGES, "tools": [FUNCTION], "tool_choice": "required"}
    answer = client.chat.completions.create(**order)
    fits_tool(answer.choices[0].message.tool_calls[0].function.arguments)
    with client.chat.completions.stream(**order) as stream:
        fits_tool(stream.get_final_completion().choices[0].message.tool_calls[0].function.arguments)


@check("completions, whole and streamed")
def _():
    assert client.completions.create(model="agent", prompt="Once").choices[0].text == SENTENCE
    assert "".join(chunk.choices[0].text for chunk in client.completions.create(model="agent", prompt="Once", stream=True) if chunk.choices) == SENTENCE


@check("embeddings")
def _():
    rows = client.embeddings.create(model="embed", input=["one", "two"]).data
    plain = client.embeddings.create(model="embed", input=["one", "two"], encoding_format="float").data
    assert [row.index for row in rows] == [0, 1]
    assert all(abs(a - b) < 1e-5 for row, other in zip(rows, plain) for a, b in zip(row.embedding, other.embedding))


@check("with_raw_response and with_streaming_response")
def _():
    raw = client.chat.completions.with_raw_response.create(model="agent", messages=MESSAGES)
    assert raw.headers["x-request-id"]
    assert raw.parse().choices[0].message.content == SENTENCE
    with client.chat.completions.with_streaming_response.create(model="agent", messages=MESSAGES) as response:
        assert response.status_code == 200
        assert response.parse().choices[0].message.content == SENTENCE


@check("async")
async def _():
    async with openai.AsyncOpenAI(base_url=BASE, api_key="anything") as many:
        answers = await asyncio.gather(*(many.chat.completions.create(model="agent", messages=MESSAGES) for _ in range(8)))
        assert all(answer.choices[0].message.content == SENTENCE for answer in answers)
        text = ""
        async for chunk in await many.chat.completions.create(model="agent", messages=MESSAGES, stream=True):
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        assert text == SENTENCE


@check("a stream that is left")
def _():
    with client.chat.completions.create(model="endless", messages=MESSAGES, stream=True, max_tokens=1_000_000) as stream:
        for seen, _ in enumerate(stream):
            if seen == 20:
                break


@check("what is wrong is refused once")
def _():
    took, error = requests_of(lambda: client.chat.completions.create(model="nobody", messages=MESSAGES))
    assert isinstance(error, openai.NotFoundError) and error.code == "model.not_found", error
    assert took == 1, took
    took, error = requests_of(lambda: client.post("/chat/completions", body={"model": "agent"}, cast_to=object))
    assert isinstance(error, openai.BadRequestError), error
    assert took == 1, took


@check("responses")
def _():
    answer = client.responses.create(model="agent", input="Who are you?", instructions="Be brief.")
    assert answer.output_text == SENTENCE
    assert answer.usage.total_tokens > 0


@check("responses, streamed as plain events")
def _():
    events = list(client.responses.create(model="agent", input=MESSAGES, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == SENTENCE


@check("responses.stream")
def _():
    with client.responses.stream(model="agent", input="Who are you?") as stream:
        last = ""
        for event in stream:
            if event.type == "response.output_text.delta":
                last = event.snapshot
        assert last == SENTENCE
        final = stream.get_final_response()
        assert final.output_text == SENTENCE and final.status == "completed" and final.created_at > 1_600_000_000


@check("responses.parse, and streamed")
def _():
    assert isinstance(client.responses.parse(model="agent", input="x", text_format=State).output_parsed, State)
    with client.responses.stream(model="agent", input="x", text_format=State) as stream:
        assert isinstance(stream.get_final_response().output_parsed, State)


@check("responses with a tool, whole and streamed")
def _():
    order = {"model": CALLER, "input": "x", "tools": [{"type": "function", "strict": False, **TOOL}], "tool_choice": "required"}
    fits_tool(next(item.arguments for item in client.responses.create(**order).output if item.type == "function_call"))
    with client.responses.stream(**order) as stream:
        fits_tool(next(item.arguments for item in stream.get_final_response().output if item.type == "function_call"))


@check("async responses.stream")
async def _():
    async with openai.AsyncOpenAI(base_url=BASE, api_key="anything") as many:
        async with many.responses.stream(model="agent", input="x") as stream:
            assert (await stream.get_final_response()).output_text == SENTENCE


@check("responses that go on from kept ones, retrieve, input_items.list and delete")
def _():
    first = client.responses.create(model="agent", input="Who are you?")
    with client.responses.stream(model="agent", input="And now?", previous_response_id=first.id) as stream:
        second = stream.get_final_response()
    assert second.output_text == SENTENCE and second.usage.input_tokens > first.usage.input_tokens
    kept = client.responses.retrieve(second.id)
    assert kept.output_text == SENTENCE and kept.previous_response_id == first.id
    items = client.responses.input_items.list(second.id, order="asc", limit=1)
    assert [item.role for item in items] == ["user", "assistant", "user"]
    client.responses.delete(second.id)
    try:
        client.responses.retrieve(second.id)
        raise AssertionError("it is still there")
    except openai.NotFoundError as error:
        assert error.code == "responses.not_found"


@check("responses in the background, polled and cancelled")
def _():
    made = client.responses.create(model="agent", input="Who are you?", background=True)
    assert made.status == "queued", made.status
    while made.status in ("queued", "in_progress"):
        made = client.responses.retrieve(made.id)
    assert made.output_text == SENTENCE, made
    endless = client.responses.create(model="endless", input="x", background=True, max_output_tokens=1_000_000)
    assert client.responses.cancel(endless.id).status == "cancelled"


if MEDIA:

    @check("audio.speech, whole and streamed to a file")
    def _():
        order = {"model": "tts", "voice": "alloy", "input": "One sentence.", "response_format": "wav"}
        assert client.audio.speech.create(**order).content[:4] == b"RIFF"
        with client.audio.speech.with_streaming_response.create(**order) as response:
            assert b"".join(response.iter_bytes())[:4] == b"RIFF"

    @check("audio.transcriptions in every form")
    def _():
        file = ("a.wav", wav(), "audio/wav")
        assert isinstance(client.audio.transcriptions.create(model="stt", file=file).text, str)
        for form in ("text", "srt", "vtt"):
            assert isinstance(client.audio.transcriptions.create(model="stt", file=file, response_format=form), str)
        verbose = client.audio.transcriptions.create(model="stt", file=file, response_format="verbose_json", timestamp_granularities=["segment"])
        assert float(verbose.duration) > 0.9
        events = list(client.audio.transcriptions.create(model="stt", file=file, stream=True))
        assert events[-1].type == "transcript.text.done"

    @check("images.generate")
    def _():
        data = client.images.generate(model="sdxl-turbo", prompt="a red apple", size="256x256", response_format="b64_json").data
        assert base64.b64decode(data[0].b64_json)[1:4] == b"PNG"
