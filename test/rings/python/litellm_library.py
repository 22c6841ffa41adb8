import os

import litellm

from check import BASE, CALLER, MEDIA, MESSAGES, SENTENCE, TOOL, URL, check, fits_tool, requests_of, wav

FUNCTION = {"type": "function", "function": TOOL}
SCHEMA = {
    "type": "object",
    "properties": {"mood": {"enum": ["good", "bad"]}},
    "required": ["mood"],
    "additionalProperties": False,
}


def tries(prefix, **to):
    @check(f"{prefix}: completion")
    def _():
        answer = litellm.completion(model=f"{prefix}/agent", messages=MESSAGES, **to)
        assert answer.choices[0].message.content == SENTENCE
        assert answer.usage.total_tokens > 0

    @check(f"{prefix}: completion, streamed")
    def _():
        chunks = list(litellm.completion(model=f"{prefix}/agent", messages=MESSAGES, stream=True, **to))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == SENTENCE
        whole = litellm.stream_chunk_builder(chunks, messages=MESSAGES)
        assert whole.choices[0].finish_reason == "stop"

    @check(f"{prefix}: acompletion")
    async def _():
        assert (await litellm.acompletion(model=f"{prefix}/agent", messages=MESSAGES, **to)).choices[0].message.content == SENTENCE

    @check(f"{prefix}: a tool, whole and streamed")
    def _():
        order = {"model": f"{prefix}/{CALLER}", "messages": MESSAGES, "tools": [FUNCTION], "tool_choice": "required", **to}
        fits_tool(litellm.completion(**order).choices[0].message.tool_calls[0].function.arguments)
        chunks = list(litellm.completion(**order, stream=True))
        fits_tool(litellm.stream_chunk_builder(chunks).choices[0].message.tool_calls[0].function.arguments)

    @check(f"{prefix}: a model that nobody knows is asked for once")
    def _():
        took, error = requests_of(lambda: litellm.completion(model=f"{prefix}/nobody", messages=MESSAGES, **to))
        assert isinstance(error, litellm.NotFoundError), error
        assert took == 1, took


OPENAI = {"api_base": BASE, "api_key": "anything"}
tries("openai", **OPENAI)
tries("hosted_vllm", **OPENAI)
tries("lm_studio", **OPENAI)


@check("a schema")
def _():
    form = {"type": "json_schema", "json_schema": {"name": "state", "strict": True, "schema": SCHEMA}}
    answer = litellm.completion(model="openai/agent", messages=MESSAGES, response_format=form, **OPENAI)
    assert "mood" in answer.choices[0].message.content


@check("text_completion")
def _():
    assert litellm.text_completion(model="text-completion-openai/agent", prompt="Once", **OPENAI).choices[0].text == SENTENCE


@check("embedding")
def _():
    assert len(litellm.embedding(model="openai/embed", input=["one", "two"], **OPENAI).data) == 2


@check("rerank")
def _():
    answer = litellm.rerank(model="hosted_vllm/rerank", query="cats", documents=["dogs 2", "cats 9"], api_base=URL, api_key="anything")
    assert answer.results[0]["index"] == 1, answer


tries("anthropic", api_base=URL, api_key="anything")


@check("responses, whole and streamed")
def _():
    assert litellm.responses(model="openai/agent", input="x", **OPENAI).output[-1].content[0].text == SENTENCE
    events = list(litellm.responses(model="openai/agent", input="x", stream=True, **OPENAI))
    assert str(events[-1].type).endswith("COMPLETED") or events[-1].type == "response.completed", events[-1]


@check("anthropic_messages by way of chat completions")
async def _():
    answer = await litellm.anthropic.messages.acreate(model="openai/agent", max_tokens=200, messages=MESSAGES, **OPENAI)
    assert answer["content"][0]["text"] == SENTENCE, answer


if MEDIA:

    @check("speech and transcription")
    def _():
        assert len(litellm.speech(model="openai/tts", voice="alloy", input="One sentence.", **OPENAI).content) > 100
        assert isinstance(litellm.transcription(model="openai/stt", file=("a.wav", wav(), "audio/wav"), **OPENAI).text, str)

    @check("image_generation")
    def _():
        data = litellm.image_generation(model="openai/sdxl-turbo", prompt="a red apple", size="256x256", **OPENAI).data
        assert data[0]["url"] or data[0]["b64_json"]

# the library crashes while the interpreter ends, after everything is done
os._exit(0)
