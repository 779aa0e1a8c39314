"""The base of all settings sections: frozen, no unknown keys, finite numbers."""

from pydantic import BaseModel, ConfigDict

LARGEST = 2**63 - 1
"""What a table's column holds; a larger number could be recorded, but never be shown."""


_ADDRESS = r"(nats|tls|wss?)://([^\s@/,'\"]*@)?([\w.-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?/?"


ADDRESSES = rf"^({_ADDRESS}(\s*,\s*{_ADDRESS})*)?$"
"""Of servers, as NATS wants them: ``nats://host:4222,nats://other:4222``."""


WEB_ADDRESS = r"^(https?://[^\s@]+)?$"
"""Without user and password, which would be shown."""


MODEL_ADDRESS = r"^(https?://\S+|[^\s@]+)$"
"""Of a model server. User and password need a scheme before them: only so it is known what must not be shown."""


_SERVER = r"https?://[^\s@?#,]+"

SERVER_ADDRESS = rf"^({_SERVER})?$"
"""Of a model server whose address the log holds: without user, password and query, which may be secret."""


SERVER_ADDRESSES = rf"^({_SERVER}(\s*,\s*{_SERVER})*)?$"
"""Of several that serve one model, with commas between them."""


class Frozen(BaseModel):
    """Base of every settings section. Unknown keys and numbers that are not finite are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
