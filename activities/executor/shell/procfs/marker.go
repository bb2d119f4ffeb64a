package procfs

// Marker is the environment variable that marks every process of an attempt with the attempt's id.
const Marker = "SWITCHYARD_CLAIM"
