/** Milliseconds of processor time that this process spends while `work` runs; a busy machine adds little to them. */
export async function processorMs (work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
