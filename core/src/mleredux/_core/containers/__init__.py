"""The container kit: what every sandbox of containers shares, whatever its engine.

Images are made from an agent's build (`recipe`, `images`), folders are mounted by the container contract (`folders`),
a launch becomes a hardened container (`container`), and `inside` runs in it. An engine's adapter translates a
`Container` and implements `ImageEngine`; neither assumes a daemon.
"""
