import os
from typing import List, Literal

import agents
import openai
from pydantic import BaseModel

from check import BASE, CALLER, SENTENCE, check, fits_tool, requests_of, run_until

agents.set_tracing_disabled(True)
client = openai.AsyncOpenAI(base_url=BASE, api_key="anything")
called = []


@agents.function_tool
def embed_text(input: List[str]) -> str:
    """Compares texts"""
    called.append({"input": input})
    return "done"


class State(BaseModel):
    mood: Literal["good", "bad"]
    sure: bool


def tries(name, kind):
    def agent(slot, **more):
        return agents.Agent(name="a", instructions="Be brief.", model=kind(model=slot, openai_client=client), **more)

    @check(f"{name}: run")
    async def _():
        assert (await agents.Runner.run(agent("agent"), "Who are you?")).final_output == SENTENCE

    @check(f"{name}: run, streamed")
    async def _():
        result = agents.Runner.run_streamed(agent("agent"), "Who are you?")
        text = ""
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                text += event.data.delta
        assert text == SENTENCE and result.final_output == SENTENCE

    @check(f"{name}: an output type")
    async def _():
        assert isinstance((await agents.Runner.run(agent("agent", output_type=State), "x")).final_output, State)

    @check(f"{name}: a tool, whole and streamed")
    async def _():
        settings = agents.ModelSettings(tool_choice="required")
        tools = {"tools": [embed_text], "model_settings": settings, "tool_use_behavior": "stop_on_first_tool"}
        called.clear()
        assert (await agents.Runner.run(agent(CALLER, **tools), "x")).final_output == "done"
        result = agents.Runner.run_streamed(agent(CALLER, **tools), "x")
        async for _ in result.stream_events():
            pass
        assert result.final_output == "done" and len(called) == 2
        for args in called:
            fits_tool(args)

    @check(f"{name}: a model that nobody knows is asked for once")
    def _():
        took, error = requests_of(lambda: run_until(agents.Runner.run(agent("nobody"), "x")))
        assert isinstance(error, openai.NotFoundError) and took == 1, (took, error)


tries("chat completions", agents.OpenAIChatCompletionsModel)
tries("responses, its default", agents.OpenAIResponsesModel)


def tries_by_name(name):
    """An agent that names its model and nothing else."""

    @check(f"{name}: run, and a tool")
    async def _():
        asked = agents.Agent(name="a", instructions="Be brief.", model="agent")
        assert (await agents.Runner.run(asked, "Who are you?")).final_output == SENTENCE
        called.clear()
        calls = agents.Agent(name="a", model=CALLER, tools=[embed_text], tool_use_behavior="stop_on_first_tool")
        assert (await agents.Runner.run(calls, "x")).final_output == "done"
        assert len(called) == 1
        fits_tool(called[0])


os.environ.update(OPENAI_BASE_URL=BASE, OPENAI_API_KEY="anything")
tries_by_name("by OPENAI_BASE_URL alone")
for key in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
    del os.environ[key]
agents.set_default_openai_client(client, use_for_tracing=False)
tries_by_name("by set_default_openai_client")
agents.set_default_openai_api("chat_completions")
tries_by_name("by set_default_openai_client, with chat completions")


@check("responses: a run goes on from the last response of another")
async def _():
    agent = agents.Agent(name="a", instructions="Be brief.", model=agents.OpenAIResponsesModel(model="agent", openai_client=client))
    first = await agents.Runner.run(agent, "Who are you?")
    second = await agents.Runner.run(agent, "And now?", previous_response_id=first.last_response_id)
    assert second.final_output == SENTENCE
    assert second.raw_responses[0].usage.input_tokens > first.raw_responses[0].usage.input_tokens
