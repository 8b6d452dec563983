"""The byte scan: fingerprints of what is to go, and a look for them in the files of a store."""
