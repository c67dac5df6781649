"""Who asks: scope, and the surface and origin of a turn."""

import re
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MAX_SCOPE_BYTES = 256
"""How long one dimension of a scope may be, in UTF-8 bytes: four of them fit one index entry."""

REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""What no identifier may hold: control characters and lone surrogates."""


class Frozen(BaseModel):
    """An immutable model without further fields; its errors do not show the input."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _identifier(value: str) -> str:
    if REFUSED.search(value):
        raise ValueError("control characters and lone surrogates are refused")
    if len(value.encode()) > MAX_SCOPE_BYTES:
        raise ValueError(f"longer than {MAX_SCOPE_BYTES} bytes")
    return value


Identifier = Annotated[str, AfterValidator(_identifier)]
"""A name that ends up in an index: short, and without control characters or lone surrogates."""


class Scope(Frozen):
    """Who asks. An empty dimension is its default plane, never "any".

    Attributes:
        agent: The agent that reads and writes.
        tenant: The tenant, such as a customer.
        principal: On whose behalf, such as a user.
        session: The one session that the caller is bound to, if any.
        read_agents: Further agents whose curated memory may be read. Never written or deleted,
            and it opens no transcript.
    """

    agent: Annotated[Identifier, Field(min_length=1)]
    tenant: Identifier = ""
    principal: Identifier = ""
    session: UUID | None = None
    read_agents: frozenset[Identifier] = frozenset()

    def visible(self, owner: "Scope") -> bool:
        """Whether this scope may read what `owner` wrote.

        Tenant and principal must be equal, the agent must be this one or one of `read_agents`, and
        what is bound to a session is seen in that session alone.
        """
        return (
            owner.tenant == self.tenant
            and owner.principal == self.principal
            and (owner.agent == self.agent or owner.agent in self.read_agents)
            and owner.session in {None, self.session}
        )


class SessionMode(StrEnum):
    """The surface that a session lives on. It never changes."""

    CHAT = "chat"
    CHANNEL = "channel"
    GATEWAY = "gateway"
    ACP = "acp"
    CODE = "code"


class TurnOrigin(StrEnum):
    """What started a turn."""

    INTERACTIVE = "interactive"
    CHANNEL = "channel"
    AGENT_DIRECT = "agent_direct"
    CRON = "cron"
    DAEMON = "daemon"
    SUB_TURN = "sub_turn"
    MIGRATION = "migration"
