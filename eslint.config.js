import stylistic from '@stylistic/eslint-plugin'
import { defineConfig, globalIgnores } from 'eslint/config'
import tseslint from 'typescript-eslint'

/** Import borders of the layers; test/architecture.test.ts enforces them, this shows them in the editor. */
const border = (files, group, message) => ({
  files,
  rules: { 'no-restricted-imports': ['error', { patterns: [{ group, message }] }] }
})

/** Readers have this repository and nothing else: comments say the facts. test/architecture.test.ts reads READMEs, too. */
const foreign = 'cites a document that is not in the repository: say the fact itself, or name a README here'
const cited = /\b(?:SPEC|STYLE|DESIGN)\.md\b|\bDESIGN \d|\b(?:[Rr]eference|[Mm]anagement|[Ii]ssue) #?\d|\b(?:of|as) the reference\b/

/** tap's `match` asks for what its pattern has: an empty array fits every array, and an empty string every string. */
const anything = 'matches whatever is there: write { length: 0 } for an empty array, Array for any, /^$/ for an empty string'
function emptyPatterns (node) {
  if (node?.type === 'ArrayExpression') return node.elements.length === 0 ? [node] : node.elements.flatMap(emptyPatterns)
  if (node?.type === 'ObjectExpression') return node.properties.flatMap(({ value, argument }) => emptyPatterns(value ?? argument))
  if (node?.type === 'ConditionalExpression') return [node.consequent, node.alternate].flatMap(emptyPatterns)
  return node?.type === 'Literal' && node.value === '' ? [node] : []
}

/**
 * V8 allocates such a function in its old generation. There it holds all that it refers to, its request and the answer's
 * bytes say, until the next full collection, however often the young generation is collected before.
 */
const tenured = 'holds what it refers to until the next full collection, since V8 allocates it as long-lived: give it a name first, and assign that'

const svc = {
  rules: {
    'no-tenured-function': {
      create: context => ({
        'AssignmentExpression[left.type="MemberExpression"]' ({ right }) {
          if (/^(?:Arrow)?FunctionExpression$/.test(right.type)) context.report({ loc: right.loc.start, message: tenured })
        }
      })
    },
    'no-foreign-documents': {
      create: context => ({
        Program () {
          for (const { loc, value } of context.sourceCode.getAllComments()) {
            if (cited.test(value)) context.report({ loc, message: foreign })
          }
        }
      })
    },
    'no-pattern-of-anything': {
      create: context => ({
        'CallExpression[callee.property.name="match"][callee.object.type="Identifier"]' ({ arguments: [, pattern] }) {
          for (const { loc } of emptyPatterns(pattern)) context.report({ loc, message: anything })
        }
      })
    }
  }
}

export default defineConfig(
  globalIgnores(['dist/', 'node_modules/', '.svc/', '.tap/', 'plugin-template/dist/', 'plugin-template/node_modules/']),
  tseslint.configs.strict,
  stylistic.configs.customize({ quotes: 'single', semi: false, commaDangle: 'never', braceStyle: '1tbs', arrowParens: false }),
  {
    plugins: { svc },
    rules: {
      'svc/no-foreign-documents': 'error',
      '@stylistic/max-len': ['error', { code: 130, ignoreUrls: true, ignoreStrings: true, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true }],
      '@stylistic/space-before-function-paren': ['error', 'always'],
      '@stylistic/arrow-parens': ['error', 'as-needed'],
      '@stylistic/max-statements-per-line': 'off',
      '@stylistic/multiline-ternary': 'off',
      '@stylistic/operator-linebreak': 'off',
      '@typescript-eslint/no-invalid-void-type': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-dynamic-delete': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrors: 'none' }]
    }
  },
  {
    files: ['kernel/**/*.ts', 'plugins/**/*.ts', 'cli/**/*.ts', 'test/**/*.ts'],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: true }],
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: false, attributes: false, properties: false, returns: false } }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }]
    }
  },
  {
    files: ['kernel/**/*.ts', 'plugins/**/*.ts'],
    rules: { 'svc/no-tenured-function': 'error' }
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      'svc/no-pattern-of-anything': 'error',
      // tap's subtests are promises that the parent test awaits by itself
      '@typescript-eslint/no-floating-promises': 'off'
    }
  },
  border(['kernel/**/*.ts'], ['**/plugins/**', '**/cli/**'], 'the kernel never imports plugins or the cli'),
  border(['plugins/**/*.ts'], ['**/kernel/**', '**/cli/**'], 'plugins import svc-gateway/plugin, node, zod and files of their own folder')
)
