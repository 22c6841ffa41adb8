import { basename, extname } from 'node:path'
import { modelRowSchema, type Model } from '../contract/index.js'

/** A model that is only a file: no registry row, its name is the file's. Pure. */
export function modelOfPath (path: string): Model {
  return { ...modelRowSchema.parse({ path }), id: basename(path, extname(path)) }
}
