"""The endpoint that other programs know: chats with checkpoints in the shape of OpenAI's API, with the token ids by
which a trainer elsewhere can learn from them."""
