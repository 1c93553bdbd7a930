"""Controls the kernel's Multipath TCP and which links it uses."""
