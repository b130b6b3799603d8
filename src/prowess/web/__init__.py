"""The console (the extra ``web``): local pages on which people see and understand their skills."""
