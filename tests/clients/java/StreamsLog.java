import java.util.*;
import java.util.concurrent.*;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;

/** What the applications of this process log. A line belongs to the application whose id is in its text or in its thread's name. */
class StreamsLog extends AbstractAppender {
    static final Queue<String> lines = new ConcurrentLinkedQueue<>();

    private StreamsLog() {
        super("kept", null, null, true, Property.EMPTY_ARRAY);
    }

    static void keep() {
        LoggerContext context = (LoggerContext) LogManager.getContext(false);
        StreamsLog appender = new StreamsLog();
        appender.start();
        var root = context.getConfiguration().getRootLogger();
        for (String name : List.copyOf(root.getAppenders().keySet())) root.removeAppender(name);
        root.setLevel(Level.INFO);
        root.addAppender(appender, Level.INFO, null);
        context.updateLoggers();
    }

    static List<String> of(String id) {
        return lines.stream().filter(line -> line.contains(id)).toList();
    }

    @Override
    public void append(LogEvent event) {
        if (event.getLoggerName().endsWith("Config")) return;
        StringBuilder line = new StringBuilder(event.getLevel() + " [" + event.getThreadName() + "] " + event.getMessage().getFormattedMessage());
        for (Throwable thrown = event.getThrown(); thrown != null; thrown = thrown.getCause()) line.append("; ").append(thrown);
        lines.add(line.toString());
    }
}
