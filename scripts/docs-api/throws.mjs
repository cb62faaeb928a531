// A plugin of TypeDoc's: the class of an error, which `@throws {RangeError}` names, into the text, where the Markdown
// plugin would leave it out.

export function load(app) {
  app.converter.on('resolveEnd', ({ project }) => {
    for (const { comment } of Object.values(project.reflections)) {
      for (const { tag, typeAnnotation, content } of comment?.blockTags ?? []) {
        if (tag !== '@throws' || !typeAnnotation) continue
        const text = `\`${typeAnnotation.replace(/[{}]/g, '')}\``
        content.unshift({ kind: 'code', text }, { kind: 'text', text: ' ' })
      }
    }
  })
}
