//! Text in, documents out: kubectl's way of cutting a stream, and the values built from the parser's events.

use granit_parser::{Event, Marker, Parser, ScalarStyle};

use super::build::Builder;
use super::json::{self, Stop};
use super::{Document, Error, Problem};

/// How much of a stream may come out of anchors and aliases, roughly in bytes of memory. goyaml v2 allows some 400 000
/// nodes, which is about as much.
const ALIAS_BUDGET: usize = 64 << 20;

/// Reads all documents of a YAML or JSON text as kubectl does; see the [module](super) for where it is stricter.
///
/// # Errors
///
/// The first thing that is wrong, with its line and column.
pub fn read(text: &str) -> Result<Vec<Document>, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut documents = Vec::new();
    let mut rest = text;
    let mut first_line = 1;
    if text.trim_start().starts_with('{') {
        let prefix = json::read(text);
        documents = prefix.documents;
        match prefix.stopped {
            None => return Ok(documents),
            Some(Stop::Refused(error)) => return Err(error),
            // kubectl (YAMLOrJSONDecoder) tries YAML when it has seen one JSON document at most.
            Some(Stop::NotJson(error)) if documents.len() > 1 => return Err(error),
            Some(Stop::NotJson(_)) => {
                rest = text.get(prefix.end..).unwrap_or_default();
                first_line += text.get(..prefix.end).unwrap_or_default().matches('\n').count();
                // What remains of the last document's line is nothing but blanks, or it is part of the next document.
                if let Some((blank, next)) = rest.split_once('\n')
                    && blank.trim().is_empty()
                {
                    rest = next;
                    first_line += 1;
                }
            }
        }
    }
    let mut budget = ALIAS_BUDGET;
    for chunk in chunks(rest, first_line)? {
        documents.extend(chunk.read(&mut budget)?);
    }
    Ok(documents)
}

/// The lines of one document, with `\n` at the end of each.
pub(super) struct Chunk {
    pub(super) text: String,
    pub(super) first_line: usize,
}

/// Cuts where kubectl cuts (`YAMLReader` of k8s.io/apimachinery): at every line that starts with `---`.
pub(super) fn chunks(text: &str, first_line: usize) -> Result<Vec<Chunk>, Error> {
    let mut chunks = Vec::new();
    let mut current = Chunk { text: String::new(), first_line };
    for (number, line) in (first_line..).zip(text.lines()) {
        forbidden_character(line, number)?;
        if let Some(after) = line.strip_prefix("---") {
            let after = after.trim();
            if !after.is_empty() && !after.starts_with('#') {
                let problem = Problem::Separator(line.trim_end().to_owned());
                return Err(Error { line: number, column: 1, path: String::new(), problem });
            }
            chunks.push(std::mem::replace(&mut current, Chunk { text: String::new(), first_line: number + 1 }));
        } else {
            current.text.push_str(line);
            current.text.push('\n');
        }
    }
    chunks.push(current);
    Ok(chunks)
}

/// libyaml (`yaml_parser_update_buffer`) refuses characters that YAML calls not printable.
fn forbidden_character(line: &str, number: usize) -> Result<(), Error> {
    let allowed = |character: char| matches!(character, '\t' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..);
    match line.chars().enumerate().find(|(_, character)| !allowed(*character)) {
        None => Ok(()),
        Some((index, character)) => Err(Error {
            line: number,
            column: index + 1,
            path: String::new(),
            problem: Problem::ForbiddenCharacter(u32::from(character)),
        }),
    }
}

impl Chunk {
    fn read(&self, budget: &mut usize) -> Result<Option<Document>, Error> {
        let options = granit_parser::options! { emit_comments: false };
        let mut builder = Builder::new(budget);
        let mut line = None;
        for item in Parser::new_from_str_with_options(&self.text, options) {
            let (event, mark) = match item {
                Ok((event, span)) => (event, span.start),
                Err(error) => {
                    let problem = Problem::Syntax(error.info());
                    return Err(self.error_at(error.marker(), builder.path(), problem));
                }
            };
            if line.is_some() && builder.is_complete() && matches!(event, Event::DocumentStart(..)) {
                return Err(self.error_at(&mark, String::new(), Problem::AfterDocumentEnd));
            }
            let in_value = matches!(
                event,
                Event::Alias(_) | Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..)
            );
            if in_value && line.is_none() {
                line = Some(self.line(&mark));
            }
            let result = build_from(&mut builder, event, self.line(&mark));
            result.map_err(|problem| self.error_at(&mark, builder.path(), problem))?;
        }
        let value = builder.into_value();
        Ok(value
            .filter(|value| !value.is_null())
            .map(|value| Document { value, line: line.unwrap_or(self.first_line) }))
    }

    fn line(&self, mark: &Marker) -> usize {
        self.first_line + mark.line().saturating_sub(1)
    }

    fn error_at(&self, mark: &Marker, path: String, problem: Problem) -> Error {
        Error { line: self.line(mark), column: mark.col() + 1, path, problem }
    }
}

fn build_from(builder: &mut Builder<'_>, event: Event<'_>, line: usize) -> Result<(), Problem> {
    match event {
        Event::Scalar(text, style, anchor, tag) => {
            let tag = tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
            builder.scalar(tag.as_deref(), style == ScalarStyle::Plain, &text, anchor, line)
        }
        Event::SequenceStart(_, anchor, _) => builder.open_list(anchor),
        Event::MappingStart(_, anchor, _) => builder.open_mapping(anchor),
        Event::SequenceEnd | Event::MappingEnd => builder.close(),
        Event::Alias(anchor) => builder.alias(anchor, line),
        _ => Ok(()),
    }
}
