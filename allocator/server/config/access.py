"""The options about who may do what."""

from typing import Annotated

from pydantic import AfterValidator, Field

from allocator.server.config.checks import readable_file
from allocator.server.config.schema import Section

Names = Annotated[tuple[str, ...], Field(strict=False)]
OptionalFile = Annotated[str, AfterValidator(readable_file)]


class AccessSection(Section):
    """Who may do what, of those that reach a TCP listener; a Unix socket's mode says who may there.

    Names are those in clients' certificates (common name, or a subject alternative name), so they
    need listen.tls_client_ca. Whoever may write may read.
    """

    session: Names = Field(
        (),
        description=(
            "Certificates of masters that may take the sidecar; empty, and no token: all may."
        ),
    )
    session_token: OptionalFile = Field(
        "",
        description=(
            "File with a token of masters that may take the sidecar, too (the module's parameter"
            " session_token_file); empty: there is none."
        ),
    )
    admin_read: Names = Field(
        (), description="Certificates of operators that may ask; empty, and no token: all may."
    )
    admin_write: Names = Field(
        (), description="Certificates of operators that may change; empty, and no token: all may."
    )
    admin_read_token: OptionalFile = Field(
        "", description="File with a token that may ask, too; empty: there is none."
    )
    admin_write_token: OptionalFile = Field(
        "", description="File with a token that may change, too; empty: there is none."
    )
