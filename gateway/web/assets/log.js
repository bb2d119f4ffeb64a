// start keeps a log current.
export function start() {}
