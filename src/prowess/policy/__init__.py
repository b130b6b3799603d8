"""What a company allows: policy files, shared approvals and revocations, and what they say."""
