// Writes the model that says one sentence to the file that is named.
import { writeFileSync } from 'node:fs'
import { bigramGguf } from '../../../dist/plugins/services/demo/bigram-gguf.js'

writeFileSync(process.argv[2], bigramGguf())
