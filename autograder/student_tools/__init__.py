"""What runs on a student's machine: copied into releases, imported by nothing of the kit."""
