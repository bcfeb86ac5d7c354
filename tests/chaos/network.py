"""Forwards connections from one port of loopback to another: a network that is cut when this process is killed."""

import asyncio
import sys
from contextlib import closing, suppress


async def forward(near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
    with closing(back), suppress(OSError):
        far, onward = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
        with closing(onward):
            pairs = (near, onward), (far, back)
            await asyncio.wait([asyncio.create_task(carry(*p)) for p in pairs], return_when=asyncio.FIRST_COMPLETED)


async def carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while content := await source.read(1 << 16):
            target.write(content)
            await target.drain()


async def main() -> None:
    await (await asyncio.start_server(forward, "127.0.0.1", int(sys.argv[1]))).serve_forever()


asyncio.run(main())
