from typing import Iterable, List, Literal

import instructor
import openai
from pydantic import BaseModel

from check import BASE, CALLER, MESSAGES, check


class State(BaseModel):
    """A state."""

    mood: Literal["good", "bad"]
    sure: bool


class embed_text(BaseModel):
    """Compares texts"""

    input: List[str]


def client(mode):
    return instructor.from_openai(openai.OpenAI(base_url=BASE, api_key="anything"), mode=mode)


for mode in (instructor.Mode.JSON_SCHEMA, instructor.Mode.TOOLS):
    # the model of slot `agent` is held to what it must say; tools are left to the template
    shape, model = (embed_text, CALLER) if mode is instructor.Mode.TOOLS else (State, "agent")

    @check(f"{mode.name}: create")
    def _():
        assert isinstance(client(mode).chat.completions.create(model=model, messages=MESSAGES, response_model=shape), shape)

    @check(f"{mode.name}: create_partial")
    def _():
        parts = list(client(mode).chat.completions.create_partial(model=model, messages=MESSAGES, response_model=shape))
        assert parts[-1].model_dump() == shape.model_validate(parts[-1].model_dump()).model_dump()


@check("JSON_SCHEMA: create_with_completion")
def _():
    state, completion = client(instructor.Mode.JSON_SCHEMA).chat.completions.create_with_completion(model="agent", messages=MESSAGES, response_model=State)
    assert completion.usage.total_tokens > 0 and isinstance(state, State)
