/** Milliseconds of processor time that this process spends while `work` runs; a busy machine adds little to them. */
export async function processorMs (work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

const DOCUMENT = Array.from({ length: 10_000 }, (_, id) => ({ id, name: `name-${id}`, tags: ['a', 'b'], nested: { value: id / 3 } }))

/**
 * Processor time of `work` as a multiple of what one megabyte of JSON takes here and now to be written, read and written
 * again: bounds in it hold on a slow machine and on a busy one.
 */
export async function timesOfJson (work: () => unknown): Promise<number> {
  const megabyte = (): string => JSON.stringify(JSON.parse(JSON.stringify(DOCUMENT)))
  // compiled and warm, as everything is in the second of two measurements
  megabyte()
  const ms = await processorMs(work)
  return ms / await processorMs(megabyte)
}
