//! The colours of the other commands, as the screen needs them.

use anstyle::{AnsiColor, Color, Effects};
use ratatui::style::{Color as ScreenColor, Modifier, Style};

/// The same style on the screen; without colours (`NO_COLOR`) bold and dim stay.
pub(super) fn on_screen(style: anstyle::Style, colours: bool) -> Style {
    let mut screen = Style::new();
    if let (true, Some(Color::Ansi(color))) = (colours, style.get_fg_color()) {
        screen = screen.fg(ansi(color));
    }
    if style.get_effects().contains(Effects::DIMMED) {
        screen = screen.add_modifier(Modifier::DIM);
    }
    if style.get_effects().contains(Effects::BOLD) {
        screen = screen.add_modifier(Modifier::BOLD);
    }
    screen
}

fn ansi(color: AnsiColor) -> ScreenColor {
    ScreenColor::Indexed(anstyle::Ansi256Color::from_ansi(color).0)
}
