"""A pool of the caller's whose connections are not as asyncpg makes them, or are another loop's."""

import asyncio
from uuid import uuid4

import asyncpg
import pytest

from adapter_core import MemoryAdapterError, MemoryItem, MemoryQuery
from adapter_postgres import PostgresMemoryStore

CODECS = {
    "uuid": (str, str),
    "text": (str, str.upper),
    "float8": (str, str),
    "int8": (str, str),
    "bool": (str, str),
}


@pytest.mark.parametrize("kind", CODECS)
async def test_a_codec_that_changes_types_is_refused_on_every_call(server, settings, admin, on_server, kind):
    item = MemoryItem(content="there")
    await on_server().store(item)
    encoder, decoder = CODECS[kind]

    async def init(connection):
        await connection.set_type_codec(kind, schema="pg_catalog", encoder=encoder, decoder=decoder)

    async with asyncpg.create_pool(server.url(), init=init, min_size=1, max_size=1) as pool:
        async with PostgresMemoryStore(pool, settings=settings) as store:
            for call in (
                lambda: store.retrieve(item.id), lambda: store.retrieve_many([item.id]),
                lambda: store.search(MemoryQuery()), lambda: store.delete(item.id), lambda: store.store(item),
            ):  # fmt: skip
                with pytest.raises(MemoryAdapterError, match="codec"):
                    await call()
        assert pool.get_idle_size() == 1


async def test_a_codec_that_is_set_later_on_a_new_connection_is_seen(server, settings, admin):
    odd = False

    async def init(connection):
        if odd:
            await connection.set_type_codec("uuid", schema="pg_catalog", encoder=str, decoder=str)

    async with asyncpg.create_pool(server.url(), init=init, min_size=1, max_size=1) as pool:
        store = PostgresMemoryStore(pool, settings=settings)
        item = MemoryItem()
        await store.store(item)
        odd = True
        await pool.expire_connections()
        with pytest.raises(MemoryAdapterError, match="codec"):
            await store.retrieve(item.id)
        await store.close()


async def test_codecs_of_other_types_and_an_own_record_class_are_fine(server, settings, admin):
    class Row(asyncpg.Record):
        pass

    async def init(connection):
        await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=str, decoder=str)

    async with asyncpg.create_pool(server.url(), init=init, record_class=Row, min_size=1, max_size=1) as pool:
        store = PostgresMemoryStore(pool, settings=settings)
        item = MemoryItem(content="x")
        await store.store(item)
        assert await store.retrieve(item.id) == item
        await store.close()


async def test_a_pool_of_another_loop_is_refused_and_not_touched(server, settings, admin):
    async with asyncpg.create_pool(server.url(), min_size=1, max_size=1) as pool:

        async def use():
            async with PostgresMemoryStore(pool, settings=settings) as store:
                await store.retrieve(uuid4())

        with pytest.raises(MemoryAdapterError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, use())
        assert await pool.fetchval("SELECT 1") == 1
        await use()
