"""What has nothing to do with matrices: optional libraries, whole files, tables for people."""
