"""The one place that opens anything: contained, bounded reads of regular files, and listings that follow no link."""
