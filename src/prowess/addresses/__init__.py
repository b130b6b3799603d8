"""Addresses: what people type to name a skill or a source of skills, parsed and checked. Nothing here opens a file."""
