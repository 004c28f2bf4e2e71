"""The container kit: what every sandbox of containers shares, whatever its engine.

Images are made from an agent's build (`recipe`, `images`), folders are mounted by the container contract (`folders`),
a launch becomes a hardened container (`container`), and `inside` runs in it. An engine's adapter translates a
`Container` and implements `ImageEngine`; neither assumes a daemon.

| module | contents |
|---|---|
| `recipe`, `dockerfile`, `ignore` | an image as files with a hash; what a Dockerfile takes; `.dockerignore` |
| `host`, `downloads`, `building`, `disk` | what a build needs of the host, and what bounds it |
| `layers`, `images` | an image in two; images found, or built once |
| `folders`, `container` | what is mounted; a launch as a hardened container |
"""
