"""A tool of your own in 40 lines: which words of the prompt the target used again in its response, most often first.

python examples/shared_words.py claims/data/smollm2-135m/transcripts.jsonl
uplift eval --tool mcp:http://127.0.0.1:8900/mcp --target smollm2-135m --limit 20
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("shared-words", version="1")
transcripts: dict[str, tuple[str, str]] = {}


@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def shared_words(transcript_id: str, top: int = 8) -> str:
    """List the words that the response shares with the prompt, with how often each occurs in the response.

    top is how many words to list, from 1 to 50. A word on top may be one that the target copied from its prompt.
    """
    if not 1 <= top <= 50:
        raise ToolError(f"Found top = {top}; expected 1 to 50. Call again with such a number.")
    prompt, response = transcripts[transcript_id]
    counts = Counter(word for word in re.findall(r"\w{4,}", response.lower()) if word in prompt.lower())
    return "\n".join(f"{word}: {count}" for word, count in counts.most_common(top)) or "They share no word."


if __name__ == "__main__":
    path, port = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 8900
    for row in map(json.loads, path.read_bytes().rstrip(b"\n").split(b"\n")):
        prompt = "\n".join(message["content"] for message in row["messages"])
        transcripts[row["transcript_id"]] = (prompt, row["response"])
    server.run("streamable-http", port=port, json_response=True, stateless_http=True)
