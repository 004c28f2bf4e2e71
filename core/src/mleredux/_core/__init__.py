"""Everything of mleredux that is not public: it may change in any release. Plugins use `mleredux.plugin`."""
