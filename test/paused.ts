const MOST_TRIES = 20

/**
 * Pauses a container. Where a machine is very busy the kernel does not come to freeze all threads of a container in the time that
 * it is given, and leaves it as it was: it is asked again.
 */
export async function pause (container: { pause (): Promise<unknown> }): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await container.pause()
      return
    } catch (error) {
      if (tries === MOST_TRIES || !(error as Error).message.includes('unable to freeze')) throw error
    }
  }
}
