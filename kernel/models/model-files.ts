import { stat } from 'node:fs/promises'
import { extname, isAbsolute } from 'node:path'
import { messageOf, svcError, type Clock, type ModelFiles, type ModelNames } from '../contract/index.js'
import { capabilitiesOfName } from './eligibility.js'
import { factsOf } from './file-facts.js'
import { HeaderReader } from './header-reader.js'

export interface ClosableModelFiles extends ModelFiles {
  close (): Promise<void>
}

/** Model files as far as their headers tell, and their names: what engines know of those is asked each time. */
export function createModelFiles (clock: Clock, names: () => readonly ModelNames[]): ClosableModelFiles {
  const reader = new HeaderReader(clock)
  return {
    async inspect (path, signal) {
      await requireFile(path)
      try {
        return factsOf(path, await reader.read(path, signal), names())
      } catch (error) {
        signal?.throwIfAborted()
        throw svcError('model.file_invalid', `${path} is not a usable GGUF file: ${messageOf(error)}; download or convert it again`,
          { details: { path, reason: messageOf(error) }, cause: error })
      }
    },
    guess: name => capabilitiesOfName(name, names()),
    close: () => reader.close()
  }
}

async function requireFile (path: string): Promise<void> {
  const missing = (why: string): Error => svcError('model.path_missing', `${path} ${why}`, { param: 'path', details: { path } })
  if (!isAbsolute(path)) throw missing('is not an absolute path')
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') throw missing('does not exist; is its disk mounted?')
    throw missing(`cannot be read (${error.code ?? messageOf(error)}); the user that runs the gateway must be able to`)
  })
  if (!stats.isFile()) throw missing(`is ${stats.isDirectory() ? 'a folder' : 'not a regular file'}; give the path of the ${extname(path) || 'model'} file itself`)
}
