"""The smallest memory adapter, to copy: a dictionary behind the portable store."""

from .service import TemplateService
from .store import TemplateDriver, TemplateMemoryStore

__all__ = ["TemplateDriver", "TemplateMemoryStore", "TemplateService"]
