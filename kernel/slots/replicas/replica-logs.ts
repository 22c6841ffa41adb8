/** Lines that one source may be ahead of the reader. */
const MOST_AHEAD = 64

/**
 * The lines of several engines as they come, each with the number of its engine before it. Ends when all have ended or
 * the reader leaves; a source that is ahead waits for the reader.
 */
export async function* mergedLogs (sources: ReadonlyArray<AsyncGenerator<string>>): AsyncGenerator<string> {
  const queue: string[] = []
  let running = sources.length
  let isLeft = false
  let failure: unknown = null
  let [wakeReader, wakeSources] = [(): void => {}, (): void => {}]
  let room = Promise.resolve()
  const read = async (source: AsyncGenerator<string>, index: number): Promise<void> => {
    for await (const line of source) {
      while (!isLeft && queue.length >= MOST_AHEAD) await room
      if (isLeft) return
      queue.push(`[${index}] ${line}`)
      if (queue.length >= MOST_AHEAD) room = new Promise(resolve => { wakeSources = resolve })
      wakeReader()
    }
  }
  const reads = sources.map(async (source, i) => {
    try {
      await read(source, i + 1)
    } catch (error) {
      failure ??= error
    }
    running--
    wakeReader()
  })
  try {
    for (;;) {
      while (queue.length > 0) {
        yield queue.shift()!
        if (queue.length < MOST_AHEAD) wakeSources()
      }
      if (running === 0) break
      await new Promise<void>(resolve => { wakeReader = resolve })
    }
  } finally {
    isLeft = true
    wakeSources()
    for (const source of sources) void source.return(undefined)
  }
  await Promise.all(reads)
  if (failure !== null) throw failure
}
