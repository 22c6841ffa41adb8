import path from 'node:path'; import { pathToFileURL } from 'node:url'
const base = (await import(pathToFileURL(path.join(process.cwd(), 'eslint.config.js')).href)).default
export default base.filter(b => !b.languageOptions?.parserOptions?.projectService)
