"""Conversation history, curated memory and enrichment for agents, kept apart."""

from .assembly import AssembledContext, ContextAssembler, ContextBudget, Dropped
from .conflicts import ConflictDetector, SubjectConflict
from .consolidation import Candidate, Consolidation, ConsolidationLimits, ConsolidationPolicy
from .curated import CuratedMemory
from .errors import (
    AuthorityError,
    InsufficientAuthority,
    SchemaMismatch,
    ScopeViolation,
    SessionConflict,
    SessionNotFound,
    UnpairedToolResult,
    UnreadableTranscript,
    UnreadableUrl,
    WriteRejected,
)
from .gate import RESERVED_FILTERS, AuthoritativeMemoryStore, require_authoritative
from .memory_store import InMemorySessionStore, MemoryTables
from .opening import open_session_store
from .provider import ComposePolicy, InjectionPolicy, RecallPolicy, RecallProvider, WritebackPolicy
from .records import DerivedHit, EnricherOutcome, MemoryKind, MemoryRecord, Provenance, Recall
from .scope import MAX_SCOPE_BYTES, Frozen, Identifier, Scope, SessionMode, TurnOrigin
from .screening import ContentScreen, PatternScreen
from .sessions import ConversationHistory, ExpiryReport, SessionStore
from .sql_store import PostgresSessionStore, SqliteSessionStore
from .transcript import (
    AssistantMessage,
    Message,
    SessionInfo,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Transcript,
    TrimReport,
    Turn,
    TurnInfo,
    UserMessage,
)

__all__ = [
    # who asks
    "Frozen",
    "Identifier",
    "MAX_SCOPE_BYTES",
    "Scope",
    "SessionMode",
    "TurnOrigin",
    # conversation history
    "AssistantMessage",
    "ConversationHistory",
    "ExpiryReport",
    "InMemorySessionStore",
    "MemoryTables",
    "Message",
    "PostgresSessionStore",
    "SessionInfo",
    "SessionStore",
    "SqliteSessionStore",
    "SystemMessage",
    "ToolCall",
    "ToolMessage",
    "Transcript",
    "TrimReport",
    "Turn",
    "TurnInfo",
    "UserMessage",
    "open_session_store",
    # prompt assembly
    "AssembledContext",
    "ConflictDetector",
    "ContextAssembler",
    "ContextBudget",
    "Dropped",
    "SubjectConflict",
    # curated memory
    "Candidate",
    "Consolidation",
    "ConsolidationLimits",
    "ConsolidationPolicy",
    "ContentScreen",
    "CuratedMemory",
    "PatternScreen",
    "AuthoritativeMemoryStore",
    "DerivedHit",
    "EnricherOutcome",
    "MemoryKind",
    "MemoryRecord",
    "Provenance",
    "RESERVED_FILTERS",
    "Recall",
    "require_authoritative",
    # best-effort recall
    "ComposePolicy",
    "InjectionPolicy",
    "RecallPolicy",
    "RecallProvider",
    "WritebackPolicy",
    # errors
    "AuthorityError",
    "InsufficientAuthority",
    "SchemaMismatch",
    "ScopeViolation",
    "SessionConflict",
    "SessionNotFound",
    "UnpairedToolResult",
    "UnreadableTranscript",
    "UnreadableUrl",
    "WriteRejected",
]
