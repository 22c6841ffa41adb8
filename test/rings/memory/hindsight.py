import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))

from check import check  # noqa: E402
from hindsight_client import Hindsight  # noqa: E402

client = Hindsight(base_url=f"{os.environ['RING_URL']}/api/memory/hindsight", api_key="any")
BANK = "python client"


def version():
    assert client.get_version().api_version == "1.1.0"


def bank():
    assert client.create_bank(bank_id=BANK, name="Python").bank_id == BANK


def retain():
    assert client.retain(bank_id=BANK, content="Alice works at Acme Corp in Berlin.", document_id="d1", tags=["a"]).success


def retain_batch():
    assert client.retain_batch(bank_id=BANK, items=[{"content": "Dave sails."}, {"content": "Erin runs."}]).items_count == 2


def recall():
    results = client.recall(bank_id=BANK, query="Who works in Berlin?").results
    assert "Acme" in results[0].text and results[0].document_id == "d1", results


def lists():
    assert client.list_memories(bank_id=BANK, limit=2).total == 3


def directives():
    made = client.create_directive(bank_id=BANK, name="short", content="Answer briefly")
    assert len(client.list_directives(bank_id=BANK).items) == 1
    client.delete_directive(bank_id=BANK, directive_id=made.id)


def refused():
    try:
        client.reflect(bank_id=BANK, query="Who is Alice?")
    except Exception as error:
        assert getattr(error, "status", None) == 501, repr(error)
    else:
        raise AssertionError("there is no model that could answer")


def deleted():
    client.delete_bank(bank_id=BANK)


check("the version")(version)
check("a bank is made")(bank)
check("a text is retained")(retain)
check("several are retained")(retain_batch)
check("recall finds it")(recall)
check("lists")(lists)
check("directives come and go")(directives)
check("what needs a model says which is missing")(refused)
check("a bank is deleted")(deleted)
client.close()
