from typing import List

from check import BASE, CALLER, SENTENCE, check, fits_tool, requests_of
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAIResponses

MESSAGES = [ChatMessage(role="user", content="Who are you?")]


def llm(model="agent"):
    return OpenAIResponses(model=model, api_base=BASE, api_key="anything", context_window=8192)


@check("OpenAIResponses: chat, whole and streamed")
async def _():
    assert llm().chat(MESSAGES).message.content == SENTENCE
    assert "".join(part.delta for part in llm().stream_chat(MESSAGES)) == SENTENCE
    assert (await llm().achat(MESSAGES)).message.content == SENTENCE
    assert "".join([part.delta async for part in await llm().astream_chat(MESSAGES)]) == SENTENCE


@check("OpenAIResponses: complete")
def _():
    assert llm().complete("Once").text == SENTENCE


@check("OpenAIResponses: a tool, and its result")
def _():
    def embed_text(input: List[str]) -> str:
        """Compares texts"""
        return "done"

    model = llm(CALLER)
    answer = model.chat_with_tools([FunctionTool.from_defaults(embed_text)], user_msg="Who are you?", tool_required=True)
    call = model.get_tool_calls_from_response(answer)[0]
    fits_tool(call.tool_kwargs)
    result = ChatMessage(role="tool", content="done", additional_kwargs={"call_id": call.tool_id})
    assert llm().chat([*MESSAGES, answer.message, result]).message.content == SENTENCE


@check("OpenAIResponses: a model that nobody knows is asked for once")
def _():
    took, error = requests_of(lambda: llm("nobody").chat(MESSAGES))
    assert error.status_code == 404 and took == 1, (took, error)
