// start lets the bars of what runs grow until a later render.
export function start() {}
